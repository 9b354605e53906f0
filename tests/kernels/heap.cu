// Memory that kernels allocate: lists, trees, arrays of objects, and their use by later kernels.

struct Node {
    int value;
    Node* next;
};

// Each thread keeps a list of the elements of its part, the last one first.
__global__ void build_lists(const int* x, int n, Node** heads) {
    int thread = blockIdx.x * blockDim.x + threadIdx.x, threads = gridDim.x * blockDim.x;
    Node* head = nullptr;
    for (int i = thread; i < n; i += threads) head = new Node{x[i], head};
    heads[thread] = head;
}

// Reverses the lists of another kernel in place and writes them out one after another.
__global__ void walk_lists(Node** heads, const int* starts, int* out) {
    int thread = blockIdx.x * blockDim.x + threadIdx.x;
    Node* reversed = nullptr;
    for (Node* node = heads[thread]; node;) {
        Node* next = node->next;
        node->next = reversed;
        reversed = node;
        node = next;
    }
    heads[thread] = reversed;
    int at = starts[thread];
    for (Node* node = reversed; node; node = node->next) out[at++] = node->value;
}

__global__ void free_lists(Node** heads) {
    int thread = blockIdx.x * blockDim.x + threadIdx.x;
    for (Node* node = heads[thread]; node;) {
        Node* next = node->next;
        delete node;
        node = next;
    }
    heads[thread] = nullptr;
}

struct Tree {
    int key, count;
    Tree *left, *right;
    __device__ explicit Tree(int k) : key(k), count(1), left(nullptr), right(nullptr) {}
    __device__ ~Tree() {
        delete left;
        delete right;
    }
};

__device__ int write_out(const Tree* tree, int* keys, int* counts, int at) {
    if (!tree) return at;
    at = write_out(tree->left, keys, counts, at);
    keys[at] = tree->key;
    counts[at] = tree->count;
    return write_out(tree->right, keys, counts, at + 1);
}

// A search tree for each row: its keys in order, and how often each occurs.
__global__ void sort_by_trees(const int* x, int width, int* keys, int* counts, int* sizes) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    Tree* root = nullptr;
    for (int i = 0; i < width; ++i) {
        Tree** at = &root;
        int key = x[row * width + i];
        while (*at && (*at)->key != key) at = key < (*at)->key ? &(*at)->left : &(*at)->right;
        if (*at)
            ++(*at)->count;
        else
            *at = new Tree(key);
    }
    sizes[row] = write_out(root, keys + row * width, counts + row * width, 0);
    delete root;
}

// Allocates memory for each row, whose length only its thread knows, and sums the numbers below that length.
__global__ void prefix_sums(const int* lengths, long long* out) {
    int row = blockIdx.x * blockDim.x + threadIdx.x, n = lengths[row];
    long long* sums = static_cast<long long*>(malloc(n * sizeof(long long)));
    if (!sums && n > 0) return;
    for (int i = 0; i < n; ++i) sums[i] = i + (i ? sums[i - 1] : 0);
    out[row] = n ? sums[n - 1] : 0;
    free(sums);
}

struct Matrix {
    float* data;
    int n;
    __device__ explicit Matrix(int size) : data(new float[size * size]), n(size) {}
    __device__ ~Matrix() { delete[] data; }
    __device__ float& operator()(int i, int j) { return data[i * n + j]; }
};

// The n-th power of each matrix, with temporaries on the heap.
__global__ void matrix_powers(const float* x, float* out, int n, int power) {
    x += (blockIdx.x * blockDim.x + threadIdx.x) * n * n;
    out += (blockIdx.x * blockDim.x + threadIdx.x) * n * n;
    Matrix* result = new Matrix(n);
    for (int i = 0; i < n * n; ++i) result->data[i] = i % (n + 1) == 0;
    for (int k = 0; k < power; ++k) {
        Matrix next(n);
        for (int i = 0; i < n; ++i) {
            for (int j = 0; j < n; ++j) {
                float sum = 0;
                for (int l = 0; l < n; ++l) sum += (*result)(i, l) * x[l * n + j];
                next(i, j) = sum;
            }
        }
        float* kept = result->data;
        result->data = next.data;
        next.data = kept;
    }
    for (int i = 0; i < n * n; ++i) out[i] = result->data[i];
    delete result;
}

// One thread allocates for its block, all threads write, one frees.
__global__ void shared_by_a_block(int* out, int n) {
    __shared__ int* data;
    if (threadIdx.x == 0) data = new int[n];
    __syncthreads();
    for (int i = threadIdx.x; i < n; i += blockDim.x) data[i] = i * i;
    __syncthreads();
    for (int i = threadIdx.x; i < n; i += blockDim.x) out[blockIdx.x * n + i] = data[n - 1 - i];
    __syncthreads();
    if (threadIdx.x == 0) delete[] data;
}

extern "C" __device__ void* __nv_aligned_device_malloc(size_t bytes, size_t alignment);

__global__ void alignments(unsigned long long* out, size_t bytes, size_t alignment) {
    out[threadIdx.x] = reinterpret_cast<unsigned long long>(
        alignment ? __nv_aligned_device_malloc(bytes, alignment) : malloc(bytes));
}


// Memory on the thread's own stack, whose size is known at run time.
__device__ void* stack_room(int bytes) {
    unsigned long long local, generic;
    asm volatile("alloca.u64 %0, %1, 16;" : "=l"(local) : "l"(static_cast<unsigned long long>(bytes)));
    asm volatile("cvta.local.u64 %0, %1;" : "=l"(generic) : "l"(local));
    return reinterpret_cast<void*>(generic);
}

__device__ __noinline__ unsigned digits(unsigned number, int depth) {
    unsigned long long local, generic;
    int count = number % 7 + 1;
    asm volatile("alloca.u64 %0, %1;" : "=l"(local) : "l"(4ull * count));
    asm volatile("cvta.local.u64 %0, %1;" : "=l"(generic) : "l"(local));
    volatile unsigned* room = reinterpret_cast<unsigned*>(generic);
    for (int i = 0; i < count; ++i) room[i] = number * (i + 1);
    unsigned below = depth == 0 ? 0 : digits(number * 1664525u + 1013904223u, depth - 1);
    unsigned sum = below;
    for (int i = 0; i < count; ++i) sum = sum * 31 + room[i];
    return sum;
}

__global__ void recursive_stack(const unsigned* x, unsigned* out, int depth) {
    int thread = blockIdx.x * blockDim.x + threadIdx.x;
    out[thread] = digits(x[thread], depth);
    out[thread] ^= digits(x[thread] + 1, depth);
}

// The stack is released in every iteration, otherwise it would overflow.
__global__ void stack_in_a_loop(int* out, int turns, int ints) {
    int sum = 0;
    for (int turn = 0; turn < turns; ++turn) {
        unsigned long long saved;
        asm volatile("stacksave.u64 %0;" : "=l"(saved));
        volatile int* room = static_cast<int*>(stack_room(4 * ints));
        for (int i = 0; i < ints; ++i) room[i] = turn ^ i;
        for (int i = ints; i-- > 0;) sum = sum * 3 + room[i];
        asm volatile("stackrestore.u64 %0;" ::"l"(saved));
    }
    out[threadIdx.x] = sum + threadIdx.x;
}
