// What nvcc declares without any #include, and constants that are copied along without theirs.
#ifndef GPUPERF_NAMES_OF_THE_HOST
#define GPUPERF_NAMES_OF_THE_HOST
#include <float.h>
#include <limits.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>

// Calls of the host.  A function of the host that makes them compiles as one of the device; no kernel calls it, so it is
// dropped.  In a kernel they stay undefined, and the assembler says so.
#if __has_include(<driver_types.h>)
#define __CUDA_INCLUDE_COMPILER_INTERNAL_HEADERS__
#include <driver_types.h>
#undef __CUDA_INCLUDE_COMPILER_INTERNAL_HEADERS__
#undef __host__
#define __host__
extern "C" __device__ void* cudaGetParameterBufferV2(void*, dim3, dim3, unsigned);
extern "C" __device__ cudaError_t cudaLaunchDeviceV2(void*, cudaStream_t);
#define GPUPERF_CALL(name) template <typename... T> __device__ cudaError_t name(T...);
GPUPERF_CALL(cudaDeviceGetAttribute) GPUPERF_CALL(cudaDeviceReset) GPUPERF_CALL(cudaDeviceSynchronize)
GPUPERF_CALL(cudaEventCreate) GPUPERF_CALL(cudaEventCreateWithFlags) GPUPERF_CALL(cudaEventDestroy)
GPUPERF_CALL(cudaEventElapsedTime) GPUPERF_CALL(cudaEventRecord) GPUPERF_CALL(cudaEventSynchronize)
GPUPERF_CALL(cudaFree) GPUPERF_CALL(cudaFreeAsync) GPUPERF_CALL(cudaFreeHost)
GPUPERF_CALL(cudaFuncSetAttribute) GPUPERF_CALL(cudaFuncGetAttributes) GPUPERF_CALL(cudaFuncSetCacheConfig)
GPUPERF_CALL(cudaGetDevice) GPUPERF_CALL(cudaGetDeviceCount) GPUPERF_CALL(cudaGetDeviceProperties)
GPUPERF_CALL(cudaGetLastError) GPUPERF_CALL(cudaHostAlloc) GPUPERF_CALL(cudaLaunchCooperativeKernel)
GPUPERF_CALL(cudaLaunchKernel) GPUPERF_CALL(cudaLaunchKernelEx) GPUPERF_CALL(cudaMallocAsync)
GPUPERF_CALL(cudaMalloc) GPUPERF_CALL(cudaMallocHost) GPUPERF_CALL(cudaMallocManaged)
GPUPERF_CALL(cudaMemcpy) GPUPERF_CALL(cudaMemcpyAsync) GPUPERF_CALL(cudaMemcpyFromSymbol)
GPUPERF_CALL(cudaMemcpyToSymbol) GPUPERF_CALL(cudaMemcpy2D) GPUPERF_CALL(cudaMemset)
GPUPERF_CALL(cudaMemsetAsync) GPUPERF_CALL(cudaOccupancyMaxActiveBlocksPerMultiprocessor)
GPUPERF_CALL(cudaPeekAtLastError) GPUPERF_CALL(cudaSetDevice) GPUPERF_CALL(cudaStreamCreate)
GPUPERF_CALL(cudaStreamDestroy) GPUPERF_CALL(cudaStreamSynchronize) GPUPERF_CALL(cudaStreamWaitEvent)
GPUPERF_CALL(exit) GPUPERF_CALL(fprintf)
#undef GPUPERF_CALL
__device__ const char* cudaGetErrorName(cudaError_t);
__device__ const char* cudaGetErrorString(cudaError_t);
struct FILE;
#define stderr nullptr
#define stdout nullptr
#define EXIT_FAILURE 1
#define EXIT_SUCCESS 0
#endif
#endif
