// Hopper's barriers and bulk copies, for kernels in which some warps copy and others compute.
//
// A barrier (mbarrier) lies in shared memory.  Its phase is over when all have arrived that it expects, and all bytes
// have come that it was told of; then the next phase begins.  Who waits, waits for the phase of a parity, 0 or 1.

#pragma once

using Barrier = unsigned long long;

__device__ __forceinline__ unsigned shared_address(const void* pointer)
{
    return static_cast<unsigned>(__cvta_generic_to_shared(pointer));
}

__device__ __forceinline__ void initialise(Barrier& barrier, int arrivals)
{
    asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(shared_address(&barrier)), "r"(arrivals) : "memory");
}

// Lets the copy engine see barriers that this thread has initialised; before the __syncthreads() for the others.
__device__ __forceinline__ void publish_barriers()
{
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

__device__ __forceinline__ void arrive(Barrier& barrier)
{
    asm volatile("mbarrier.arrive.shared.b64 _, [%0];" ::"r"(shared_address(&barrier)) : "memory");
}

__device__ __forceinline__ void arrive_and_expect(Barrier& barrier, int bytes)
{
    asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" ::"r"(shared_address(&barrier)), "r"(bytes)
                 : "memory");
}

__device__ __forceinline__ void wait_for(Barrier& barrier, int parity)
{
    int over = 0;
    while (!over) {
        asm volatile("{ .reg .pred over; mbarrier.try_wait.parity.shared.b64 over, [%1], %2; selp.b32 %0, 1, 0, over; }"
                     : "=r"(over)
                     : "r"(shared_address(&barrier)), "r"(parity)
                     : "memory");
    }
}

// From global to shared memory by the copy engine, which reports the bytes to the barrier.  All in multiples of 16.
__device__ __forceinline__ void bulk_copy(void* to, const void* from, int bytes, Barrier& barrier)
{
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
                     shared_address(to)),
                 "l"(__cvta_generic_to_global(from)), "r"(bytes), "r"(shared_address(&barrier))
                 : "memory");
}
