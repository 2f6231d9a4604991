! SLATER - variational Monte Carlo over Slater determinants
!
! Method  N fermions of one spin in the plane, in a harmonic trap, without interaction
!         (units of the oscillator: h-bar, mass and frequency are 1). The wave function is
!         the determinant of A(i,j) = phi_j(r_i), the N lowest orbitals at the places of
!         the N particles. NW walkers sample its square by Metropolis moves: one particle
!         of every walker is moved at a time, and a move is accepted with the probability
!         |D'/D|**2 = exp(2*(logabs' - logabs)).
!            gedet_batch_strided   the determinants of all walkers: sign and logarithm, for
!                                  the determinants themselves would overflow
!            geinv_batch_strided   the inverses, for the local energy
!                                  E = sum over i of r_i**2/2
!                                      - sum over j of (laplacian phi_j)(r_i)*inv(A)(j,i)/2
!
! Check   The determinant of the lowest orbitals is the exact ground state, so that
!         1. the local energy is the sum of the orbitals' energies at every place (its
!            variance is zero): within TOLE, relative;
!         2. the sum of r_i**2 has that mean too (virial theorem), and
!         3. D'/D, with its sign, for one particle shifted by SHIFT along x, has the mean
!            1/N * sum over j of exp(-SHIFT**2/4)*L_nx(j)(SHIFT**2/2), L_n Laguerre's
!            polynomial: both within NSIGMA standard errors, which are to be below MAXERR
!            of the exact value. Walkers are independent, so the spread of their means gives
!            the standard error.
!
! Input   NS, NW, NEQ, NM (list-directed, unit 5): filled shells, which make N =
!         NS*(NS+1)/2 particles; walkers; sweeps before and while measuring.
! Output  The three results, exact values, errors, PASS or FAIL (stop 1).
!
! Build   gfortran slater.f90 $(pkg-config --cflags --libs batchlapack)
!
! References
!         D. Ceperley, G. V. Chester, M. H. Kalos, Monte Carlo simulation of a many-fermion
!         study, Phys. Rev. B 16, 1977.
!         M. H. Kalos, P. A. Whitlock, Monte Carlo Methods, Wiley, 2008.
program slater
  use batchlapack
  implicit none
  integer, parameter :: dp = kind(1.0d0)
  integer, parameter :: nsmax = 12
  real(dp), parameter :: step = 1.2_dp, shift = 0.6_dp
  real(dp), parameter :: tole = 1.0e-9_dp, nsigma = 4, maxerr = 0.03_dp
  integer :: ns, n, nw, neq, nm, i, j, k, w, sweep, ios
  integer(8) :: seed, accepted, tries, it0, it1, ticks, rate
  integer, allocatable :: nx(:), ny(:), info(:)
  real(dp), allocatable :: r(:,:,:)            ! places: 2, N, walkers
  real(dp), allocatable :: a(:,:,:)            ! orbitals at the places: N, N, walkers
  real(dp), allocatable :: ainv(:,:,:)
  real(dp), allocatable :: old(:,:), place(:,:)  ! row and place to go back to
  real(dp), allocatable :: phase(:), logabs(:), phase1(:), logabs1(:)
  real(dp), allocatable :: sumr2(:), sumratio(:)
  real(dp) :: energy, r2, ratio, worst, e
  logical :: ok

  read (*, *, iostat=ios) ns, nw, neq, nm
  if (ios /= 0 .or. ns < 1 .or. ns > nsmax .or. nw < 2 .or. neq < 0 .or. nm < 1) then
    write (*, *) 'SLATER: NS, NW, NEQ OR NM OUT OF RANGE'
    stop 2
  end if
  n = ns*(ns + 1)/2
  allocate (nx(n), ny(n), info(nw), r(2,n,nw), a(n,n,nw), ainv(n,n,nw), old(n,nw), &
      place(2,nw), phase(nw), logabs(nw), phase1(nw), logabs1(nw), sumr2(nw), sumratio(nw))

  ! The orbitals, shell by shell, and what they say the results must be.
  energy = 0
  ratio = 0
  j = 0
  do k = 0, ns - 1
    do i = 0, k
      j = j + 1
      nx(j) = i
      ny(j) = k - i
      energy = energy + (nx(j) + ny(j) + 1)
      ratio = ratio + exp(-shift**2/4)*laguerre(nx(j), shift**2/2)/n
    end do
  end do
  write (*, 100) n, nw, neq, nm

  ! Walkers begin at random in a square as wide as the outermost orbital.
  seed = 1977
  do w = 1, nw
    do i = 1, n
      r(1,i,w) = (2*uniform() - 1)*sqrt(2.0_dp*ns)
      r(2,i,w) = (2*uniform() - 1)*sqrt(2.0_dp*ns)
      call orbitals(r(:,i,w), a(i,:,w))
    end do
  end do

  ticks = 0
  accepted = 0
  tries = 0
  sumr2 = 0
  sumratio = 0
  worst = 0
  ok = .true.
  call determinants(phase, logabs)
  do sweep = 1, neq + nm
    do i = 1, n
      do w = 1, nw
        place(1,w) = r(1,i,w) + step*(uniform() - 0.5_dp)
        place(2,w) = r(2,i,w) + step*(uniform() - 0.5_dp)
        old(:,w) = a(i,:,w)
        call orbitals(place(:,w), a(i,:,w))
      end do
      call determinants(phase1, logabs1)
      do w = 1, nw
        if (uniform() < exp(2*(logabs1(w) - logabs(w)))) then
          r(:,i,w) = place(:,w)
          phase(w) = phase1(w)
          logabs(w) = logabs1(w)
          accepted = accepted + 1
        else
          a(i,:,w) = old(:,w)
        end if
      end do
      tries = tries + nw
    end do
    if (sweep > neq) call measure
  end do
  write (*, 110) 100*real(accepted, dp)/real(tries, dp), real(ticks, dp)/real(rate, dp)

  write (*, 120)
  write (*, 130) energy + e, energy, worst, tole
  ok = ok .and. worst <= tole
  r2 = energy
  call verdict('SUM OF R**2', sumr2/nm, r2)
  call verdict('RATIO D''/D', sumratio/nm, ratio)
  if (.not. ok) then
    write (*, *) 'FAIL'
    stop 1
  end if
  write (*, *) 'PASS'

100 format (' SLATER DETERMINANTS OF', i4, ' FERMIONS,', i7, ' WALKERS,', i6, ' +', i6, &
        ' SWEEPS')
110 format (' ACCEPTED', f6.1, ' PER CENT' / ' SECONDS IN BATCHLAPACK', f10.3 /)
120 format (17x, 'MEASURED', 11x, 'EXACT', 11x, 'ERROR', 7x, 'TOLERANCE')
130 format (' ENERGY      ', f12.6, f16.6, 1p, 2e16.2)

contains

  ! The determinants of all walkers.
  subroutine determinants(phase, logabs)
    real(dp), intent(inout) :: phase(:), logabs(:)
    call system_clock(it0, rate)
    call gedet_batch_strided(n, a, n, n*n, phase, logabs, nw, info)
    call system_clock(it1)
    ticks = ticks + it1 - it0
  end subroutine

  ! Local energies, r**2, and the ratio for a shift of one particle, which particle in
  ! turn.
  subroutine measure
    real(dp) :: lap(n), moved(2), local
    integer :: i, w
    call system_clock(it0, rate)
    call geinv_batch_strided(n, a, n, n*n, ainv, n, n*n, nw, info)
    call system_clock(it1)
    ticks = ticks + it1 - it0
    ok = ok .and. all(info == 0)
    e = 0
    do w = 1, nw
      local = 0
      do i = 1, n
        call laplacians(r(:,i,w), lap)
        local = local + sum(r(:,i,w)**2)/2 - dot_product(lap, ainv(:,i,w))/2
      end do
      local = local - energy
      e = e + local/nw
      if (.not. abs(local) <= worst*energy) worst = abs(local)/energy
      sumr2(w) = sumr2(w) + sum(r(:,:,w)**2)
    end do
    i = 1 + mod(sweep, n)
    do w = 1, nw
      old(:,w) = a(i,:,w)
      moved = r(:,i,w)
      moved(1) = moved(1) + shift
      call orbitals(moved, a(i,:,w))
    end do
    call determinants(phase1, logabs1)
    sumratio = sumratio + phase*phase1*exp(logabs1 - logabs)
    do w = 1, nw
      a(i,:,w) = old(:,w)
    end do
  end subroutine

  ! The mean over the walkers beside the exact one. What is NaN fails.
  subroutine verdict(name, walker, exact)
    character(*), intent(in) :: name
    real(dp), intent(in) :: walker(:), exact
    real(dp) :: mean, sigma
    mean = sum(walker)/nw
    sigma = sqrt(sum((walker - mean)**2)/(nw - 1.0_dp)/nw)
    write (*, '(1x, a, t14, f12.6, f16.6, 1p, 2e16.2)') name, mean, exact, &
        abs(mean - exact), nsigma*sigma
    ok = ok .and. abs(mean - exact) <= nsigma*sigma .and. sigma <= maxerr*abs(exact)
  end subroutine

  ! h(n) is the n-th eigenfunction of the oscillator, by its recurrence.
  subroutine oscillator(x, h)
    real(dp), intent(in) :: x
    real(dp), intent(out) :: h(-2:)
    integer :: k
    h(-2:-1) = 0
    h(0) = exp(-x**2/2)/acos(-1.0_dp)**0.25_dp
    do k = 1, ubound(h, 1)
      h(k) = sqrt(2.0_dp/k)*x*h(k-1) - sqrt((k - 1.0_dp)/k)*h(k-2)
    end do
  end subroutine

  subroutine orbitals(place, phi)
    real(dp), intent(in) :: place(2)
    real(dp), intent(out) :: phi(:)
    real(dp) :: hx(-2:ns+1), hy(-2:ns+1)
    call oscillator(place(1), hx)
    call oscillator(place(2), hy)
    phi = [(hx(nx(j))*hy(ny(j)), j = 1, n)]
  end subroutine

  subroutine laplacians(place, lap)
    real(dp), intent(in) :: place(2)
    real(dp), intent(out) :: lap(:)
    real(dp) :: hx(-2:ns+1), hy(-2:ns+1)
    call oscillator(place(1), hx)
    call oscillator(place(2), hy)
    lap = [(second(hx, nx(j))*hy(ny(j)) + hx(nx(j))*second(hy, ny(j)), j = 1, n)]
  end subroutine

  ! h'' from the neighbours: h(n)' = sqrt(n/2)*h(n-1) - sqrt((n+1)/2)*h(n+1), twice.
  pure real(dp) function second(h, k)
    real(dp), intent(in) :: h(-2:)
    integer, intent(in) :: k
    second = (sqrt(k*(k - 1.0_dp))*h(k-2) - (2*k + 1)*h(k) &
        + sqrt((k + 1.0_dp)*(k + 2.0_dp))*h(k+2))/2
  end function

  pure real(dp) function laguerre(k, x)
    integer, intent(in) :: k
    real(dp), intent(in) :: x
    real(dp) :: before, next
    integer :: i
    before = 0
    laguerre = 1
    do i = 1, k
      next = ((2*i - 1 - x)*laguerre - (i - 1)*before)/i
      before = laguerre
      laguerre = next
    end do
  end function

  ! The minimal standard generator: 16807*seed mod 2**31-1.
  real(dp) function uniform()
    seed = mod(16807*seed, 2147483647_8)
    uniform = real(seed, dp)/2147483647.0_dp
  end function
end program
