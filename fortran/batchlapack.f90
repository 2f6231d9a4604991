! The batched routines and the controls of libbatchlapack for Fortran programs:
!
!     use batchlapack
!
! Explicit interfaces to every routine of include/batchlapack.h, and nothing else: there
! is no code in this module, only what the compiler needs to know. What the routines do,
! INFO, exactness: batchlapack(7), getrf_batch_strided(3) and so on.
!
! Names. getrf_batch_strided and the others are generic over the four kinds (real(4),
! real(8), complex(4), complex(8)) and over the integers (integer(4) and integer(8); all of
! a call are of one kind). Matrices are a(lda, n, batch), pivots ipiv(n, batch), INFO
! info(batch); or all of these have rank 1. For other shapes, or an array element that
! stands for an array, use the specific names dgetrf_batch_strided (integer(4)) and
! dgetrf_batch_strided_64 (integer(8)), which take arrays of any rank.
!
! Groups (getrf_batch, getrfnp_batch, getri_oop_batch, potrf_batch) take arrays of
! type(c_ptr), made by c_loc, which have no kind: dgetrf_batch is generic over the integers
! only.
!
! INFO, IPIV and the results have intent(inout), since a call with an illegal argument
! leaves them as they were. Fortran forbids to pass one array twice when it is written:
! give geinv two.
!
! Device data. Inside `!$acc host_data use_device(a, ipiv, info)` or `!$omp target data
! use_device_addr(a, ipiv, info)` the calls get device addresses, and run where the data
! is; whole examples are in batchlapack(7).
!
! The interfaces are made from the library's table of routines by interfaces.awk. Both
! sources are installed beside the compiled module, for compilers whose modules differ.
module batchlapack
  use, intrinsic :: iso_c_binding, only: c_char, c_double, c_double_complex, c_float, &
      c_float_complex, c_int, c_int32_t, c_int64_t, c_ptr, c_size_t
  implicit none
  private :: c_char, c_double, c_double_complex, c_float, c_float_complex, c_int, &
      c_int32_t, c_int64_t, c_ptr, c_size_t

  ! Where the thread's calls run, see batchlapack_set_mode.
  integer(c_int), parameter :: batchlapack_mode_default = -1, batchlapack_mode_auto = 0, &
      batchlapack_mode_gpu = 1, batchlapack_mode_cpu = 2

  ! What batchlapack_status, _reserve and _release say.
  integer(c_int), parameter :: batchlapack_ok = 0, batchlapack_no_memory = 1, &
      batchlapack_fault = 2, batchlapack_lost = 3, batchlapack_unsupported = 4, &
      batchlapack_bad_argument = 5

  interface
    ! Set the thread's mode; the one before, or -2 when there is no such mode.
    integer(c_int) function batchlapack_set_mode(mode) &
        bind(C, name='batchlapack_set_mode')
      import
      integer(c_int), value :: mode
    end function

    ! Set the thread's CUDA stream for device data (c_null_ptr: none); the one before.
    type(c_ptr) function batchlapack_set_stream(stream) &
        bind(C, name='batchlapack_set_stream')
      import
      type(c_ptr), value :: stream
    end function

    ! What became of the thread's last batched call.
    integer(c_int) function batchlapack_status() bind(C, name='batchlapack_status')
      import
    end function

    ! Its text, and the version of the library: C strings that end with a zero.
    type(c_ptr) function batchlapack_status_text(status) &
        bind(C, name='batchlapack_status_text')
      import
      integer(c_int), value :: status
    end function
    type(c_ptr) function batchlapack_version() bind(C, name='batchlapack_version')
      import
    end function

    ! Hold device memory for the workspace of device calls, and give it back; a status.
    integer(c_int) function batchlapack_reserve(bytes) bind(C, name='batchlapack_reserve')
      import
      integer(c_size_t), value :: bytes
    end function
    integer(c_int) function batchlapack_release() bind(C, name='batchlapack_release')
      import
    end function
  end interface

  include 'batchlapack_interfaces.inc'
end module
