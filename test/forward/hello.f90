! A Fortran program as people write it: solve, factor, print. Nothing knows of the preload.
program hello
   implicit none
   double precision :: a(2, 2), b(2), c(2, 2)
   integer :: ipiv(2), info
   external :: dgesv, dpotrf
   a = reshape([0d0, 1d0, 2d0, 3d0], [2, 2])
   b = [2d0, 4d0]
   call dgesv(2, 1, a, 2, ipiv, b, 2, info)
   print '(4i2,2f6.3)', info, ipiv, 0, b
   c = reshape([4d0, 2d0, 99d0, 5d0], [2, 2])
   call dpotrf('Lower', 2, c, 2, info)
   print '(i2,4f7.3)', info, c
end program hello
