// Dynamic programming: tables whose cells depend on earlier ones.

// Edit distances of many pairs of words, one block per pair, by anti-diagonals, three of them in shared memory.
__global__ void edit_distance(const char* a, const char* b, const int* lengths_a, const int* lengths_b,
                              int* out, int longest) {
    extern __shared__ int diagonals[];
    const char *left = a + blockIdx.x * longest, *right = b + blockIdx.x * longest;
    int m = lengths_a[blockIdx.x], n = lengths_b[blockIdx.x], width = longest + 1;
    for (int d = 0; d <= m + n; ++d) {
        int* now = diagonals + d % 3 * width;
        const int* before = diagonals + (d + 2) % 3 * width;
        const int* twice_before = diagonals + (d + 1) % 3 * width;
        for (int i = max(0, d - n) + static_cast<int>(threadIdx.x); i <= min(d, m); i += blockDim.x) {
            int j = d - i;
            int cost = max(i, j);
            if (i && j) {
                cost = min(min(before[i - 1], before[i]) + 1,
                           twice_before[i - 1] + (left[i - 1] != right[j - 1]));
            }
            now[i] = cost;
        }
        __syncthreads();
    }
    if (threadIdx.x == 0) out[blockIdx.x] = diagonals[(m + n) % 3 * width + m];
}

// The length of the longest common subsequence, one thread per pair, 64 characters of `a` at a time as bits.
__global__ void longest_common(const unsigned char* a, const unsigned char* b, int* out, int pairs, int m,
                               int n) {
    int pair = blockIdx.x * blockDim.x + threadIdx.x;
    if (pair >= pairs) return;
    const unsigned char *left = a + pair * m, *right = b + pair * n;
    unsigned long long rows[4];
    for (int w = 0; w < 4; ++w) rows[w] = ~0ull;
    for (int j = 0; j < n; ++j) {
        unsigned carry = 0;
        for (int w = 0; w < 4; ++w) {
            unsigned long long matches = 0;
            for (int i = w * 64; i < min(m, w * 64 + 64); ++i) {
                matches |= static_cast<unsigned long long>(left[i] == right[j]) << (i - w * 64);
            }
            unsigned long long old = rows[w], met = old & matches;
            unsigned long long sum = old + met;
            unsigned over = sum < old;
            sum += carry;
            over |= sum < carry;
            carry = over;
            rows[w] = sum | (old & ~matches);
        }
    }
    int length = 0;
    for (int w = 0; w < 4; ++w) length += __popcll(~rows[w]);
    out[pair] = length;
}

// The greatest value for every capacity up to the given one. One block; the two rows of the table alternate.
__global__ void knapsack(const int* weights, const int* values, int items, int* table, int capacity) {
    int width = capacity + 1;
    for (int c = threadIdx.x; c < width; c += blockDim.x) table[c] = 0;
    __syncthreads();
    for (int k = 0; k < items; ++k) {
        const int* before = table + k % 2 * width;
        int* now = table + (k + 1) % 2 * width;
        int weight = weights[k], value = values[k];
        for (int c = threadIdx.x; c < width; c += blockDim.x) {
            now[c] = c >= weight ? max(before[c], before[c - weight] + value) : before[c];
        }
        __syncthreads();
    }
}

// Floyd-Warshall: shortens every path that is shorter through vertex k. The host launches it once for each k.
__global__ void floyd_warshall(unsigned* distances, int n, int k) {
    int j = blockIdx.x * blockDim.x + threadIdx.x, i = blockIdx.y * blockDim.y + threadIdx.y;
    if (i >= n || j >= n) return;
    unsigned to = distances[i * n + k], from = distances[k * n + j];
    if (to == 0xffffffffu || from == 0xffffffffu) return;
    if (to + from < distances[i * n + j]) distances[i * n + j] = to + from;
}
