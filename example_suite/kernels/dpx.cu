// Add and take the larger in one instruction, for one value or for two.
// From the GTC 2025 talk "CUDA Techniques to Maximize Compute and Instruction Throughput", which names DPX among the
// vectorised instructions that reduce the instruction count.
//
// Local alignment of a short query with many targets (Smith and Waterman, gaps after Gotoh):
//
//   e[i] = max(e[i] - extend, h[i] of the letter before - open)      a gap in the query
//   f    = max(f - extend,    h[i - 1] - open)                       a gap in the target
//   h[i] = max(h[i - 1] of the letter before + match or mismatch, e[i], f, 0)
//
//   align_plain        max() and + on int, a target per thread.
//   align_dpx          the same with __viaddmax_s32 and __viaddmax_s32_relu: from sm_90 on the compiler makes these
//                      out of max() and + by itself, and the machine code is that of align_plain.
//   align_dpx_s16x2    two targets per thread, in the halves of a word: what no compiler does by itself.  The same
//                      number of instructions for twice the cells.
//
// All scores are sums of small integers: 16 bits hold them, and the three agree exactly.
//
// In the machine code: VIADDMNMX and VIMNMX on sm_90, with .S16x2 for two at once and .RELU for "or 0".  On sm_80 there
// are none: a packed one is taken apart into two additions and two IMNMX, and costs more than it saves.  On sm_120 the
// packed addition and the packed maximum are two instructions.
//
// Letters are 0, 3, 5 and 6: two different ones differ by at least 3 in their exclusive or, equal ones by 0.  So
// max(2 - (a ^ b), -1) is 2 for a match and -1 for a mismatch, without a comparison.

constexpr int kQuery = 16;  // letters
constexpr int kMatch = 2;
constexpr int kMismatch = -1;
constexpr int kOpen = 3;
constexpr int kExtend = 1;
constexpr int kNever = -1000;  // a gap that is not open yet; far from what 16 bits do not hold

// ~x is -x - 1, and an exclusive or with a negated operand is one instruction.
struct Plain {
    using Word = int;
    using Letter = unsigned short;
    using Score = short;

    static __device__ Word all(int value)
    {
        return value;
    }
    static __device__ Word add(Word a, Word b)
    {
        return a + b;
    }
    static __device__ Word larger(Word a, Word b)
    {
        return max(a, b);
    }
    static __device__ Word add_larger(Word a, Word b, Word c)
    {
        return max(a + b, c);
    }
    static __device__ Word add_larger_or_0(Word a, Word b, Word c)
    {
        return max(max(a + b, c), 0);
    }
};

struct Dpx : Plain {
    static __device__ Word add_larger(Word a, Word b, Word c)
    {
        return __viaddmax_s32(a, b, c);
    }
    static __device__ Word add_larger_or_0(Word a, Word b, Word c)
    {
        return __viaddmax_s32_relu(a, b, c);
    }
};

struct DpxOfTwo {
    using Word = unsigned;
    using Letter = unsigned;
    using Score = unsigned;

    static __device__ Word all(int value)
    {
        return (static_cast<unsigned>(value) & 0xffffu) * 0x10001u;
    }
    static __device__ Word add(Word a, Word b)
    {
        return __vadd2(a, b);
    }
    static __device__ Word larger(Word a, Word b)
    {
        return __vmaxs2(a, b);
    }
    static __device__ Word add_larger(Word a, Word b, Word c)
    {
        return __viaddmax_s16x2(a, b, c);
    }
    static __device__ Word add_larger_or_0(Word a, Word b, Word c)
    {
        return __viaddmax_s16x2_relu(a, b, c);
    }
};

// `targets` is letter after letter, each of all targets: `length` rows of `count`.  A thread takes a target, or two
// neighbours, and leaves the best score of each.  `words` is how many Letters a row has.
template <typename Arithmetic>
__device__ __forceinline__ void align(const void* query, const void* targets, void* best, int words, int length)
{
    using Word = typename Arithmetic::Word;
    using Letter = typename Arithmetic::Letter;
    const int thread = blockIdx.x * blockDim.x + threadIdx.x;
    if (thread >= words) return;
    Word letters[kQuery];
    Word h[kQuery];       // of the target's letter before
    Word h_less_open[kQuery];
    Word e[kQuery];
#pragma unroll
    for (int i = 0; i < kQuery; ++i) {
        letters[i] = Arithmetic::all(static_cast<const unsigned short*>(query)[i]);
        h[i] = Arithmetic::all(0);
        h_less_open[i] = Arithmetic::all(-kOpen);
        e[i] = Arithmetic::all(kNever);
    }
    Word most = Arithmetic::all(0);
    const Letter* next = static_cast<const Letter*>(targets) + thread;
#pragma unroll 1
    for (int j = 0; j < length; ++j) {
        const Word letter = static_cast<Word>(*next);
        next += words;
        Word f = Arithmetic::all(kNever);
        Word above_less_open = Arithmetic::all(-kOpen);
        Word diagonal = Arithmetic::all(0);
#pragma unroll
        for (int i = 0; i < kQuery; ++i) {
            const Word fits = Arithmetic::add_larger(~(letter ^ letters[i]), Arithmetic::all(kMatch + 1),
                                                     Arithmetic::all(kMismatch));
            e[i] = Arithmetic::add_larger(e[i], Arithmetic::all(-kExtend), h_less_open[i]);
            f = Arithmetic::add_larger(f, Arithmetic::all(-kExtend), above_less_open);
            const Word score = Arithmetic::add_larger_or_0(diagonal, fits, Arithmetic::larger(e[i], f));
            diagonal = h[i];
            h[i] = score;
            above_less_open = h_less_open[i] = Arithmetic::add(score, Arithmetic::all(-kOpen));
            most = Arithmetic::larger(most, score);
        }
    }
    static_cast<typename Arithmetic::Score*>(best)[thread] = static_cast<typename Arithmetic::Score>(most);
}

extern "C" __global__ void align_plain(const void* query, const void* targets, void* best, int words, int length)
{
    align<Plain>(query, targets, best, words, length);
}

extern "C" __global__ void align_dpx(const void* query, const void* targets, void* best, int words, int length)
{
    align<Dpx>(query, targets, best, words, length);
}

extern "C" __global__ void align_dpx_s16x2(const void* query, const void* targets, void* best, int words, int length)
{
    align<DpxOfTwo>(query, targets, best, words, length);
}
