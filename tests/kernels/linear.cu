// Small dense matrices, one for each thread, in registers and in local memory. Elements are `count` apart.

template <class T, int N>
struct Square {
    T at[N][N];

    __device__ void load(const T* from, int i, int count) {
        for (int e = 0; e < N * N; ++e) at[e / N][e % N] = from[e * count + i];
    }
    __device__ void store(T* to, int i, int count) const {
        for (int e = 0; e < N * N; ++e) to[e * count + i] = at[e / N][e % N];
    }
};

// Gauss-Jordan elimination with partial pivoting; the rows are swapped in local memory, by a variable index.
__global__ void invert(const double* matrices, double* inverses, unsigned char* singular, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    constexpr int n = 4;
    Square<double, n> a, b{};
    a.load(matrices, i, count);
    for (int k = 0; k < n; ++k) b.at[k][k] = 1;
    for (int k = 0; k < n; ++k) {
        int pivot = k;
        for (int r = k + 1; r < n; ++r) {
            if (fabs(a.at[r][k]) > fabs(a.at[pivot][k])) pivot = r;
        }
        if (a.at[pivot][k] == 0) {
            singular[i] = 1;
            return;
        }
        for (int c = 0; c < n; ++c) {
            double swapped = a.at[k][c];
            a.at[k][c] = a.at[pivot][c];
            a.at[pivot][c] = swapped;
            swapped = b.at[k][c];
            b.at[k][c] = b.at[pivot][c];
            b.at[pivot][c] = swapped;
        }
        double scale = 1 / a.at[k][k];
        for (int c = 0; c < n; ++c) {
            a.at[k][c] *= scale;
            b.at[k][c] *= scale;
        }
        for (int r = 0; r < n; ++r) {
            double factor = a.at[r][k];
            if (r == k) continue;
            for (int c = 0; c < n; ++c) {
                a.at[r][c] -= factor * a.at[k][c];
                b.at[r][c] -= factor * b.at[k][c];
            }
        }
    }
    b.store(inverses, i, count);
    singular[i] = 0;
}

// The lower factor of symmetric positive definite matrices, whose order is an argument.
__global__ void cholesky(const float* matrices, float* factors, int n, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    float l[8][8];
    for (int r = 0; r < n; ++r) {
        for (int c = 0; c <= r; ++c) {
            float sum = matrices[(r * n + c) * count + i];
            for (int k = 0; k < c; ++k) sum -= l[r][k] * l[c][k];
            l[r][c] = r == c ? sqrtf(sum) : sum / l[c][c];
        }
        for (int c = r + 1; c < n; ++c) l[r][c] = 0;
    }
    for (int e = 0; e < n * n; ++e) factors[e * count + i] = l[e / n][e % n];
}

// Householder reflections: q is orthogonal, r upper triangular.
__global__ void qr(const double* matrices, double* qs, double* rs, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    constexpr int n = 5;
    Square<double, n> q{}, r;
    r.load(matrices, i, count);
    for (int k = 0; k < n; ++k) q.at[k][k] = 1;
    for (int k = 0; k < n - 1; ++k) {
        double v[n] = {}, norm = 0, squares = 0;
        for (int j = k; j < n; ++j) norm = hypot(norm, r.at[j][k]);
        for (int j = k; j < n; ++j) v[j] = r.at[j][k];
        v[k] += copysign(norm, v[k]);
        for (int j = k; j < n; ++j) squares += v[j] * v[j];
        if (squares == 0) continue;
        for (int c = 0; c < n; ++c) {
            double down = 0, across = 0;
            for (int j = k; j < n; ++j) {
                down += v[j] * r.at[j][c];
                across += q.at[c][j] * v[j];
            }
            for (int j = k; j < n; ++j) {
                r.at[j][c] -= 2 * down / squares * v[j];
                q.at[c][j] -= 2 * across / squares * v[j];
            }
        }
    }
    q.store(qs, i, count);
    r.store(rs, i, count);
}

// Tridiagonal systems by forward elimination and back substitution, one thread each; both sweeps in global memory.
__global__ void tridiagonal(const double* lower, const double* diagonal, const double* upper, double* right,
                            double* scratch, int n, int systems) {
    for (auto s : bascule::grid_stride(systems)) {
        double before = 0, solved = 0;
        for (int k = 0; k < n; ++k) {
            long long at = (long long)k * systems + s;
            double below = k ? lower[at] : 0, pivot = diagonal[at] - below * before;
            before = upper[at] / pivot;
            solved = (right[at] - below * solved) / pivot;
            scratch[at] = before;
            right[at] = solved;
        }
        for (int k = n - 2; k >= 0; --k) {
            long long at = (long long)k * systems + s;
            solved = right[at] - scratch[at] * solved;
            right[at] = solved;
        }
    }
}
