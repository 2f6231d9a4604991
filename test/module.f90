! The Fortran module: every generic name, for the four kinds and both integers, once
! forced to the engine and once on the CPU. The problems are made so that factors, pivots,
! determinants and solutions are known and, in exact arithmetic, free of rounding. So a
! name, or an argument's place or type, that the module has wrong is found out here. The
! tests themselves are in module_body.inc, which the subroutine of each kind includes.
module module_cases
  use batchlapack
  use, intrinsic :: iso_c_binding, only: c_associated, c_char, c_f_pointer, c_int, &
      c_loc, c_null_char, c_null_ptr, c_ptr
  implicit none
  integer, parameter :: dp = kind(1.0d0), n = 6, nrhs = 2, batch = 5
  integer :: failed = 0, mode
  character(3), parameter :: mode_name(2) = ['gpu', 'cpu']

contains

  subroutine verdict(name, good)
    character(*), intent(in) :: name
    logical, intent(in) :: good
    if (good) then
      write (*, '(2a)') 'ok module-', name
    else
      write (*, '(3a)') 'not ok module-', name, ' - another result than the known one'
      failed = failed + 1
    end if
  end subroutine

  ! Row i of U, the matrices L*U in reverse order of rows, the definite ones, X.
  pure function upper(i, w)
    integer, intent(in) :: i, w
    real(dp) :: upper(n)
    integer :: j
    upper = [(merge(real(i + j + w, dp), 0.0_dp, j >= i), j = 1, n)]
  end function

  function lu_problem() result(a)
    real(dp) :: a(n, n, batch)
    integer :: i, j, w
    do w = 1, batch
      do i = 1, n
        a(n+1-i, :, w) = upper(i, w)
        do j = 1, i - 1
          a(n+1-i, :, w) = a(n+1-i, :, w) + 0.5_dp*upper(j, w)
        end do
      end do
    end do
  end function

  function definite_problem() result(a)
    real(dp) :: a(n, n, batch)
    integer :: i, j, w
    a = reshape([(((4.0_dp**w*min(i, j), i = 1, n), j = 1, n), w = 1, batch)], shape(a))
  end function

  function solution() result(x)
    real(dp) :: x(n, nrhs, batch)
    integer :: i, j, w
    x = reshape([(((real(mod(i*j + w, 5) - 2, dp), i = 1, n), j = 1, nrhs), &
        w = 1, batch)], shape(x))
  end function

  ! What the results must be.
  logical function is_lu(f, unit)
    complex(dp), intent(in) :: f(:, :, :), unit
    real(dp) :: row(n)
    integer :: i, w
    is_lu = .true.
    do w = 1, batch
      do i = 1, n
        is_lu = is_lu .and. all(f(i, :i-1, w) == 0.5_dp)
        row = upper(i, w)
        is_lu = is_lu .and. all(f(i, i:, w) == unit*row(i:))
      end do
    end do
  end function

  logical function mirrored(ipiv)
    integer, intent(in) :: ipiv(:, :)
    integer :: i
    mirrored = all(ipiv == spread([(max(i, n + 1 - i), i = 1, n)], 2, batch))
  end function

  logical function is_cholesky(f)
    complex(dp), intent(in) :: f(:, :, :)
    integer :: i, j, w
    is_cholesky = .true.
    do w = 1, batch
      do j = 1, n
        is_cholesky = is_cholesky .and. all(f(j:, j, w) == 2.0_dp**w) .and. &
            all(f(:j-1, j, w) == [(4.0_dp**w*i, i = 1, j - 1)])
      end do
    end do
  end function

  ! 4**w times the lower triangle: 2 on the diagonal, 1 in the corner, -1 beside it; the
  ! upper triangle is the problem's.
  logical function is_tridiagonal(f, tolerance)
    complex(dp), intent(in) :: f(:, :, :)
    real(dp), intent(in) :: tolerance
    real(dp) :: want
    integer :: i, j, w
    is_tridiagonal = .true.
    do w = 1, batch
      do j = 1, n
        do i = j, n
          want = merge(merge(1, 2, i == n), merge(-1, 0, i == j + 1), i == j)
          is_tridiagonal = is_tridiagonal .and. &
              abs(4.0_dp**w*f(i, j, w) - want) <= tolerance
        end do
        is_tridiagonal = is_tridiagonal .and. &
            all(f(:j-1, j, w) == [(4.0_dp**w*i, i = 1, j - 1)])
      end do
    end do
  end function

  logical function is_inverse(x, a, tolerance)
    complex(dp), intent(in) :: x(:, :, :), a(:, :, :)
    real(dp), intent(in) :: tolerance
    complex(dp) :: residual(n, n)
    integer :: i, w
    is_inverse = .true.
    do w = 1, batch
      residual = matmul(a(:, :, w), x(:, :, w))
      do i = 1, n
        residual(i, i) = residual(i, i) - 1
      end do
      is_inverse = is_inverse .and. all(abs(residual) <= tolerance)
    end do
  end function

  ! P*A = L*U.
  logical function factors_of(f, ipiv, a, tolerance)
    complex(dp), intent(in) :: f(:, :, :), a(:, :, :)
    integer, intent(in) :: ipiv(:, :)
    real(dp), intent(in) :: tolerance
    complex(dp), dimension(n, n) :: l, u, pa
    integer :: i, w
    factors_of = all(ipiv >= spread([(i, i = 1, n)], 2, batch)) .and. all(ipiv <= n)
    if (.not. factors_of) return
    do w = 1, batch
      l = 0
      u = 0
      pa = a(:, :, w)
      do i = 1, n
        l(i, :i-1) = f(i, :i-1, w)
        l(i, i) = 1
        u(i, i:) = f(i, i:, w)
        pa([i, ipiv(i, w)], :) = pa([ipiv(i, w), i], :)
      end do
      factors_of = factors_of .and. &
          all(abs(matmul(l, u) - pa) <= tolerance*maxval(abs(pa)))
    end do
  end function

  function text(p) result(t)
    type(c_ptr), intent(in) :: p
    character(:), allocatable :: t
    character(kind=c_char), pointer :: c(:)
    integer :: i
    call c_f_pointer(p, c, [100])
    t = ''
    do i = 1, 100
      if (c(i) == c_null_char) exit
      t = t // c(i)
    end do
  end function

  subroutine controls
    integer(c_int) :: before, unchanged, set
    type(c_ptr) :: stream
    character(:), allocatable :: version, words
    before = batchlapack_set_mode(batchlapack_mode_cpu)
    unchanged = batchlapack_set_mode(7_c_int)
    set = batchlapack_set_mode(before)
    call verdict('set-mode', before == batchlapack_mode_default .and. &
        unchanged == -2 .and. set == batchlapack_mode_cpu)
    version = text(batchlapack_version())
    call verdict('version', scan(version, '.') > 1)
    words = text(batchlapack_status_text(batchlapack_bad_argument))
    call verdict('status-text', len(words) > 0)
    call verdict('status', batchlapack_status() == batchlapack_ok)
    stream = batchlapack_set_stream(c_null_ptr)
    call verdict('set-stream', .not. c_associated(stream))
  end subroutine

  subroutine real4_integer4
    use batchlapack, only: &
        getrf_groups => sgetrf_batch, getrfnp_groups => sgetrfnp_batch, &
        getri_oop_groups => sgetri_oop_batch, potrf_groups => spotrf_batch, &
        getrf_any_shape => sgetrf_batch_strided
    integer, parameter :: wp = 4, ik = 4
    character(*), parameter :: kinds = 'real4-integer4'
    real(wp), parameter :: unit = -1
    real(wp), dimension(n, n, batch), target :: a, f, x
    real(wp), dimension(n, nrhs, batch) :: b, y
    real(wp) :: flat(n*n*batch), flat_b(n*nrhs*batch), phase(batch)
    include 'module_body.inc'
  end subroutine

  subroutine real4_integer8
    use batchlapack, only: &
        getrf_groups => sgetrf_batch, getrfnp_groups => sgetrfnp_batch, &
        getri_oop_groups => sgetri_oop_batch, potrf_groups => spotrf_batch, &
        getrf_any_shape => sgetrf_batch_strided_64
    integer, parameter :: wp = 4, ik = 8
    character(*), parameter :: kinds = 'real4-integer8'
    real(wp), parameter :: unit = -1
    real(wp), dimension(n, n, batch), target :: a, f, x
    real(wp), dimension(n, nrhs, batch) :: b, y
    real(wp) :: flat(n*n*batch), flat_b(n*nrhs*batch), phase(batch)
    include 'module_body.inc'
  end subroutine

  subroutine real8_integer4
    use batchlapack, only: &
        getrf_groups => dgetrf_batch, getrfnp_groups => dgetrfnp_batch, &
        getri_oop_groups => dgetri_oop_batch, potrf_groups => dpotrf_batch, &
        getrf_any_shape => dgetrf_batch_strided
    integer, parameter :: wp = 8, ik = 4
    character(*), parameter :: kinds = 'real8-integer4'
    real(wp), parameter :: unit = -1
    real(wp), dimension(n, n, batch), target :: a, f, x
    real(wp), dimension(n, nrhs, batch) :: b, y
    real(wp) :: flat(n*n*batch), flat_b(n*nrhs*batch), phase(batch)
    include 'module_body.inc'
  end subroutine

  subroutine real8_integer8
    use batchlapack, only: &
        getrf_groups => dgetrf_batch, getrfnp_groups => dgetrfnp_batch, &
        getri_oop_groups => dgetri_oop_batch, potrf_groups => dpotrf_batch, &
        getrf_any_shape => dgetrf_batch_strided_64
    integer, parameter :: wp = 8, ik = 8
    character(*), parameter :: kinds = 'real8-integer8'
    real(wp), parameter :: unit = -1
    real(wp), dimension(n, n, batch), target :: a, f, x
    real(wp), dimension(n, nrhs, batch) :: b, y
    real(wp) :: flat(n*n*batch), flat_b(n*nrhs*batch), phase(batch)
    include 'module_body.inc'
  end subroutine

  subroutine complex4_integer4
    use batchlapack, only: &
        getrf_groups => cgetrf_batch, getrfnp_groups => cgetrfnp_batch, &
        getri_oop_groups => cgetri_oop_batch, potrf_groups => cpotrf_batch, &
        getrf_any_shape => cgetrf_batch_strided
    integer, parameter :: wp = 4, ik = 4
    character(*), parameter :: kinds = 'complex4-integer4'
    complex(wp), parameter :: unit = (0, 1)
    complex(wp), dimension(n, n, batch), target :: a, f, x
    complex(wp), dimension(n, nrhs, batch) :: b, y
    complex(wp) :: flat(n*n*batch), flat_b(n*nrhs*batch), phase(batch)
    include 'module_body.inc'
  end subroutine

  subroutine complex4_integer8
    use batchlapack, only: &
        getrf_groups => cgetrf_batch, getrfnp_groups => cgetrfnp_batch, &
        getri_oop_groups => cgetri_oop_batch, potrf_groups => cpotrf_batch, &
        getrf_any_shape => cgetrf_batch_strided_64
    integer, parameter :: wp = 4, ik = 8
    character(*), parameter :: kinds = 'complex4-integer8'
    complex(wp), parameter :: unit = (0, 1)
    complex(wp), dimension(n, n, batch), target :: a, f, x
    complex(wp), dimension(n, nrhs, batch) :: b, y
    complex(wp) :: flat(n*n*batch), flat_b(n*nrhs*batch), phase(batch)
    include 'module_body.inc'
  end subroutine

  subroutine complex8_integer4
    use batchlapack, only: &
        getrf_groups => zgetrf_batch, getrfnp_groups => zgetrfnp_batch, &
        getri_oop_groups => zgetri_oop_batch, potrf_groups => zpotrf_batch, &
        getrf_any_shape => zgetrf_batch_strided
    integer, parameter :: wp = 8, ik = 4
    character(*), parameter :: kinds = 'complex8-integer4'
    complex(wp), parameter :: unit = (0, 1)
    complex(wp), dimension(n, n, batch), target :: a, f, x
    complex(wp), dimension(n, nrhs, batch) :: b, y
    complex(wp) :: flat(n*n*batch), flat_b(n*nrhs*batch), phase(batch)
    include 'module_body.inc'
  end subroutine

  subroutine complex8_integer8
    use batchlapack, only: &
        getrf_groups => zgetrf_batch, getrfnp_groups => zgetrfnp_batch, &
        getri_oop_groups => zgetri_oop_batch, potrf_groups => zpotrf_batch, &
        getrf_any_shape => zgetrf_batch_strided_64
    integer, parameter :: wp = 8, ik = 8
    character(*), parameter :: kinds = 'complex8-integer8'
    complex(wp), parameter :: unit = (0, 1)
    complex(wp), dimension(n, n, batch), target :: a, f, x
    complex(wp), dimension(n, nrhs, batch) :: b, y
    complex(wp) :: flat(n*n*batch), flat_b(n*nrhs*batch), phase(batch)
    include 'module_body.inc'
  end subroutine
end module

program module_test
  use module_cases
  implicit none
  integer(c_int) :: before
  call controls
  do mode = 1, 2
    before = batchlapack_set_mode(int(mode, c_int))
    call real4_integer4
    call real4_integer8
    call real8_integer4
    call real8_integer8
    call complex4_integer4
    call complex4_integer8
    call complex8_integer4
    call complex8_integer8
  end do
  if (failed > 0) stop 1
end program
