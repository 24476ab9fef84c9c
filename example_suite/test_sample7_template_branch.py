"""A branch that is never taken still costs registers.

From R. Bourgeois, "Five basic performance advice for porting kernels to the GPU" (sample 7).
"""

import numpy as np

SOURCE = "kernels/sample7_template_branch.cu"
BRANCH, LIGHT_BRANCH = "blur_at_run_time<128>", "blur_at_run_time<8>"
TEMPLATE, OPTION = "blur_at_compile_time<false, 128>", "blur_at_compile_time<true, 128>"
TWO_SUMS, LOADS_FIRST = "blur_or_sums<128>", "blur_loads_first"


def compiled(cuda_kernel, expression):
    return cuda_kernel(SOURCE, expression.partition("<")[0], name_expression=expression)


def launch_over(kernel, out, image, *option):
    side = len(image)
    return kernel.launch(grid=-(-((side - 2) ** 2) // 128), block=128, args=(out, image, side, *option))


def five_point_mean(image):
    image = image.astype("float64")
    return (image[1:-1, 1:-1] + image[1:-1, :-2] + image[1:-1, 2:] + image[:-2, 1:-1] + image[2:, 1:-1]) / 5


def expensive_option(image):
    j, i = 1 + np.indices((len(image) - 2, len(image) - 2))
    values = [image[j, i] + image[j, (i + j + k) % len(image)] for k in range(128)]
    s = sum(value * 0.5**k for k, value in enumerate(reversed(values)))
    return sum(value * s * 0.25**k for k, value in enumerate(values))


def test_blur_and_option_are_right(cuda_kernel, gpu):
    given = np.random.default_rng(300).uniform(0.5, 1.5, (66, 66)).astype(np.float32)
    exact = given.astype(np.float64)
    kernels = {name: compiled(cuda_kernel, name) for name in (BRANCH, TEMPLATE, OPTION, TWO_SUMS, LOADS_FIRST)}
    for name, *option in (BRANCH, 0), (BRANCH, 1), (TEMPLATE,), (OPTION,), (TWO_SUMS, 0), (LOADS_FIRST,):
        out = gpu.zeros(given.shape)
        launch_over(kernels[name], out, gpu.array(given), *option)()
        expensive = name == OPTION or 1 in option
        expected = np.pad(five_point_mean(given) + expensive * expensive_option(exact), 1)
        np.testing.assert_allclose(gpu.to_host(out), expected, rtol=1e-4 if expensive else 1e-6, err_msg=name)
    assert kernels[LOADS_FIRST].registers == kernels[TEMPLATE].registers < kernels[TWO_SUMS].registers


def test_blur_of_an_image(cuda_kernel, gpu, gpuperf):
    side = 2**14
    image = gpu.random((side, side), seed=301, low=0.5, high=1.5)

    def measure(called, name, *option):
        out = gpu.zeros(image.shape)

        def check():
            for j in range(0, side - 2, 2048):  # in bands, for the memory that float64 takes
                rows = slice(j, min(j + 2050, side))
                gpu.assert_allclose(out[rows][1:-1, 1:-1], five_point_mean(image[rows]), rtol=1e-6)

        launch = launch_over(compiled(cuda_kernel, name), out, image, *option)
        return gpuperf(launch, name=called, bytes=2 * image.nbytes, flops=5 * (side - 2) ** 2, check=check)

    branch = measure("branch", BRANCH, 0)
    template = measure("template", TEMPLATE)
    measure("two sums", TWO_SUMS, 0), measure("loads first", LOADS_FIRST)
    light_branch = measure("light branch", LIGHT_BRANCH, 0)
    assert template.registers < branch.registers
    assert template.time_ns < branch.time_ns
    assert light_branch.time_ns < 1.05 * template.time_ns  # few registers behind a branch cost nothing
