// The cache from C++: a template is compiled once for each type, however often it is requested. Images compiled by this
// process come from memory, those of earlier processes from disk.
#include <cstdio>
#include <string>
#include <vector>

#include <bascule/bascule.hpp>

namespace {

constexpr const char* text = R"(
template <class T>
__global__ void square(const T* x, T* out, int n) {
    for (auto i : bascule::grid_stride(n)) out[i] = x[i] * x[i];
}
)";

/// Squares n numbers with a new Kernel, as if each caller had its own text. Returns where the code came from.
template <class T>
bascule::Origin run(int n) {
    bascule::Source source;
    source.text = text;
    source.name = "cached.cu";  // for messages
    const bascule::Kernel square(source, "square");
    const auto launch = square.typed<void(const T*, T*, int)>();  // T follows from the signature

    std::vector<T> numbers(n);
    for (int i = 0; i < n; ++i) numbers[i] = static_cast<T>(i);
    const bascule::Stream stream;
    const auto x = bascule::to_device(numbers, stream);
    const bascule::DeviceArray<T> out(n, stream);
    launch.forall(stream, n, x, out, n);
    const std::vector<T> result = out.copy_to_host();
    for (int i = 0; i < n; ++i) {
        if (result[i] != numbers[i] * numbers[i]) {
            throw bascule::Error("element " + std::to_string(i) + " is wrong");
        }
    }
    return launch.kernel().provenance(out.device())->origin;
}

}  // namespace

int main() {
    try {
        const int n = 4000;
        for (const char* time : {"first", "second"}) {
            const std::string of_float = to_string(run<float>(n));
            const std::string of_double = to_string(run<double>(n));
            std::printf("%s time: square<float>: %s, square<double>: %s\n", time, of_float.c_str(),
                        of_double.c_str());
        }
        const bascule::CacheStatistics counts = bascule::Cache::process_default().statistics();
        std::printf("%d compiled, %d from disk, %d from memory\n", static_cast<int>(counts.compiled),
                    static_cast<int>(counts.from_disk), static_cast<int>(counts.from_memory));
        if (counts.from_memory < 2) throw bascule::Error("the second time nothing came from memory");
        std::printf("every one of %d elements is right\n", 4 * n);
        return 0;
    } catch (const bascule::Error& error) {
        std::fprintf(stderr, "cached: %s\n", error.what());
        return 1;
    }
}
