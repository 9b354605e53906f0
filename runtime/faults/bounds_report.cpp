#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <deque>
#include <mutex>
#include <vector>

#include <fmt/format.h>

#include <bascule/jit/process/never_destroyed.hpp>
#include <bascule/runtime/driver/driver.hpp>
#include <bascule/runtime/faults/bounds_report.hpp>
#include <bascule/runtime/memory/memory.hpp>
#include <bascule/runtime/streams/stream.hpp>

namespace bascule {
namespace {

constexpr std::size_t most_remembered = 1024;

/// The host's definition of bascule::bounds_record in jit/device/bounds.cuh.
struct BoundsRecord {
    std::uint32_t state, count, image;
    ViewTag view;
    std::int32_t axis, rank, line;
    std::int64_t index, extent;
    std::uint32_t block[3], thread[3];
    char file[232];
};
static_assert(sizeof(BoundsRecord) == 304);
constexpr std::uint32_t complete = 2;

/// The host's definition of bascule::bounds_hook.
struct Hook {
    std::uint64_t record = 0;
    std::uint32_t image = 0;
    std::uint32_t padding = 0;
};

/// The host and device addresses of a device's record. Made once and never freed, because kernels may write to it until
/// the process ends.
struct PlacedRecord {
    volatile BoundsRecord* host = nullptr;
    std::uint64_t device_address = 0;
};

struct NamedParameters {
    std::uint32_t number = 0;
    std::vector<Signature> signatures;
};

struct Records {
    std::mutex mutex;
    std::array<PlacedRecord, max_devices> placed;
    std::deque<NamedParameters> newest_first;
    std::uint32_t last_number = 0;
};

Records& records() { return never_destroyed<Records>(); }

PlacedRecord make_record(Device device) {
    const Driver& driver = Driver::get();
    const ContextGuard context(device.context());
    void* memory = nullptr;
    driver.check(driver.api().cuMemHostAlloc(&memory, sizeof(BoundsRecord),
                                             CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_PORTABLE),
                 "allocating the report of an index out of bounds");
    std::memset(memory, 0, sizeof(BoundsRecord));
    CUdeviceptr address = 0;
    driver.check(driver.ask_pointer(reinterpret_cast<CUdeviceptr>(memory),
                                    CU_POINTER_ATTRIBUTE_DEVICE_POINTER, &address),
                 "asking where a device sees host memory");
    return {static_cast<volatile BoundsRecord*>(memory), address};
}

std::uint64_t record_address(Device device) {
    Records& all = records();
    const std::lock_guard lock(all.mutex);
    PlacedRecord& placed = all.placed[static_cast<std::size_t>(device.ordinal())];
    if (placed.host == nullptr) placed = make_record(device);
    return placed.device_address;
}

/// The signature of the view's kernel; null if it was forgotten.
const Signature* signature_of(const Records& all, std::uint32_t image, ViewTag view) {
    for (const NamedParameters& known : all.newest_first) {
        if (known.number != image) continue;
        for (const Signature& signature : known.signatures) {
            const auto index = static_cast<std::size_t>(view.parameter);
            if (tag_of(signature.kernel) == view.kernel && index < signature.parameters.size())
                return &signature;
        }
    }
    return nullptr;
}

/// Returns "kernel 'blur', parameter 'image' (`bascule::array_view<float, 2>`)".
std::string name_of(const Signature* signature, ViewTag view) {
    if (signature == nullptr) return fmt::format("a kernel's view, parameter {}", view.parameter + 1);
    const Parameter& parameter = signature->parameters[static_cast<std::size_t>(view.parameter)];
    return fmt::format("kernel '{}', parameter '{}' (`{}`)", signature->kernel, parameter.name,
                       parameter.spelling);
}

std::string triple(const std::uint32_t (&values)[3]) {
    return fmt::format("({},{},{})", values[0], values[1], values[2]);
}

std::string describe(const Signature* signature, const BoundsRecord& record) {
    std::string text = fmt::format(
        "index out of bounds: {} at line {} of {}\n  index {} of axis {}, which has {} element{}\n"
        "  in block {}, thread {}",
        name_of(signature, record.view), record.line, record.file, record.index, record.axis, record.extent,
        record.extent == 1 ? "" : "s", triple(record.block), triple(record.thread));
    if (record.count > 1) {
        text += fmt::format("\n  {} other thread{} left a view too", record.count - 1,
                            record.count == 2 ? "" : "s");
    }
    return text;
}

}  // namespace

bool checks_bounds(const Image& image) noexcept { return image.ptx.find(bounds_hook) != std::string::npos; }

std::uint32_t remember_parameters(const Image& image) {
    NamedParameters names;
    for (const KernelImage& kernel : image.kernels) names.signatures.push_back(kernel.signature);
    Records& all = records();
    const std::lock_guard lock(all.mutex);
    names.number = ++all.last_number;
    all.newest_first.push_front(std::move(names));
    if (all.newest_first.size() > most_remembered) all.newest_first.pop_back();
    return all.last_number;
}

void forget_bounds_reports() noexcept {
    Records& all = records();
    const std::lock_guard lock(all.mutex);
    for (const PlacedRecord& placed : all.placed) {
        if (placed.host != nullptr) *const_cast<BoundsRecord*>(placed.host) = {};
    }
}

void place_bounds_record(std::uint64_t hook, std::size_t bytes, std::uint32_t number, Device device) {
    const Hook content{record_address(device), number};
    // A separate stream, so that this does not wait for the user's work.
    const Stream stream(device);
    copy_to_device(stream, hook, &content, std::min(sizeof content, bytes));
    stream.ref().synchronize();
}

BoundsReport bounds_report() {
    Records& all = records();
    const std::lock_guard lock(all.mutex);
    BoundsReport report;
    for (const PlacedRecord& placed : all.placed) {
        if (placed.host == nullptr || placed.host->state != complete) continue;
        std::atomic_thread_fence(std::memory_order_acquire);
        BoundsRecord record;
        std::memcpy(&record, const_cast<const BoundsRecord*>(placed.host), sizeof record);
        record.file[sizeof record.file - 1] = '\0';
        const Signature* signature = signature_of(all, record.image, record.view);
        if (report.text.empty() && signature != nullptr) report.kernel = signature->kernel;
        report.text += (report.text.empty() ? "" : "\n") + describe(signature, record);
    }
    return report;
}

}  // namespace bascule
