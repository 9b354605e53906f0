// Searches in texts.

// Every position of the pattern, marked by a byte.
__global__ void find_naive(const char* text, int length, const char* pattern, int width,
                           unsigned char* found) {
    for (auto i : bascule::grid_stride(length)) {
        bool here = i + width <= length;
        for (int k = 0; here && k < width; ++k) here = text[i + k] == pattern[k];
        found[i] = here;
    }
}

// The Knuth-Morris-Pratt automaton for one pattern, whose failure table is computed by the compiler.
struct Failures {
    int at[8];
    __device__ constexpr Failures(const char* pattern, int width) : at{} {
        for (int i = 1, k = 0; i < width; ++i) {
            while (k && pattern[i] != pattern[k]) k = at[k - 1];
            if (pattern[i] == pattern[k]) ++k;
            at[i] = k;
        }
    }
};
__constant__ char pattern[9] = "abababca";
__constant__ Failures failures("abababca", 8);

// A thread counts the occurrences in its own line.
__global__ void count_kmp(const char* lines, const int* starts, int* counts, int line_count) {
    int line = blockIdx.x * blockDim.x + threadIdx.x;
    if (line >= line_count) return;
    int count = 0;
    for (int i = starts[line], k = 0; i < starts[line + 1]; ++i) {
        while (k && lines[i] != pattern[k]) k = failures.at[k - 1];
        if (lines[i] == pattern[k]) ++k;
        if (k == 8) {
            ++count;
            k = failures.at[7];
        }
    }
    counts[line] = count;
}

// Upper-cases letters and counts the words. A neighbour may already be upper-case, but it is still a letter.
__global__ void words(volatile char* text, int length, int* count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    auto letter = [](char c) { return (c | 32) >= 'a' && (c | 32) <= 'z'; };
    bool begins = i < length && letter(text[i]) && (i == 0 || !letter(text[i - 1]));
    unsigned votes = __ballot_sync(__activemask(), begins);
    if (threadIdx.x % 32 == 0 && votes) atomicAdd(count, __popc(votes));
    if (i < length && text[i] >= 'a' && text[i] <= 'z') text[i] = text[i] - 32;
}
