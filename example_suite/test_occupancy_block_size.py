"""How many threads to a block, and what an SM can hold.

From the GTC 2025 talk "CUDA Techniques to Maximize Compute and Instruction Throughput".
"""

import numpy as np

SOURCE = "kernels/occupancy_block_size.cu"
OCCUPANCY = {32: 0.5, 64: 1, 768: 0.75, 1024: 1}  # on Hopper, by block size


def launch_over(kernel, block, src, dst):
    return kernel.launch(grid=-(-src.size // block), block=block, args=(src, dst, src.size))


def launch_to_stay(kernel, block, sms, src, dst):
    return kernel.launch(grid=32 * sms, block=block, args=(src, dst, src.size))  # an SM has 32 slots for blocks


def test_every_element_is_copied(cuda_kernel, gpu):
    once, in_rounds = cuda_kernel(SOURCE, "copy_elements"), cuda_kernel(SOURCE, "copy_in_rounds")
    src = gpu.random(100_003, seed=100)
    dst = gpu.empty_like(src)
    launches = [launch_over(once, block, src, dst) for block in (32, 33, 64, 768, 1024)]
    launches += [launch_to_stay(in_rounds, block, sms, src, dst) for block, sms in ((32, 1), (64, 7))]
    for launch in launches:
        dst.fill(0)
        launch()
        np.testing.assert_array_equal(gpu.to_host(dst), gpu.to_host(src), err_msg=str(launch))


def test_a_block_takes_whole_warps(cuda_kernel, gpu, record_property):
    warps = gpu.zeros(3, dtype="int32")
    cuda_kernel(SOURCE, "count_warps").launch(grid=3, block=33, args=(warps,))()
    record_property("warps of a block of 33 threads", int(gpu.to_host(warps).max()))
    np.testing.assert_array_equal(gpu.to_host(warps), 2)


def test_copy_by_block_size(cuda_kernel, gpu, gpuperf):
    """Small blocks are slow because so many have to be launched: blocks that stay are as fast at half the occupancy."""
    src = gpu.random(2**27, seed=101)
    dst = gpu.zeros(src.shape)

    def check():
        gpu.assert_equal(dst, src)
        dst.fill(0)  # what the next block size does not copy is seen

    def measure(name, launch):
        return gpuperf(launch, name=name, bytes=2 * src.nbytes, check=check)

    kernel, in_rounds = cuda_kernel(SOURCE, "copy_elements"), cuda_kernel(SOURCE, "copy_in_rounds")
    launches = {block: launch_over(kernel, block, src, dst) for block in OCCUPANCY}
    runs = {block: measure(f"block of {block}", launch) for block, launch in launches.items()}
    few, many = (measure(f"block of {block} that stays", launch_to_stay(in_rounds, block, gpu.sm_count, src, dst))
                 for block in (32, 64))  # fmt: skip
    if "sm_90" in kernel.profiles:
        assert {block: launch.occupancy["sm_90"].fraction for block, launch in launches.items()} == OCCUPANCY
    assert runs[1024].time_ns < runs[768].time_ns < runs[64].time_ns < runs[32].time_ns
    assert few.time_ns < 1.1 * many.time_ns
