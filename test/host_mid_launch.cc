/* kernels/mid.cu, which launches the kernels of middle sizes, compiled for the host. */
#include "cuda_runtime.h"
#include "mid.cu"
