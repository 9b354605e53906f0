// Asks the emulated device for races between streams and for what its checks of kernels found.
#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include <bascule/interface/errors/error.hpp>
#include <bascule/runtime/driver/device.hpp>
#include <bascule/runtime/driver/driver.hpp>
#include <bascule/runtime/driver/emulated_device.hpp>
#include <bascule/runtime/driver/found_errors.hpp>

namespace bascule {

std::atomic<std::uint32_t> detail::raised_checks{unknown_checks};

namespace {

constexpr std::uint32_t races_bit = BASCULE_EMULATED_CHECK_RACES;
constexpr std::uint32_t leaks_bit = BASCULE_EMULATED_CHECK_LEAKS;  // listed at the end, never raised

std::atomic<FindingDescriber> finding_describer{nullptr};

const EmulatedFunctions* emulated_functions() noexcept {
    const Driver* driver = Driver::existing();
    return driver == nullptr ? nullptr : driver->emulated_functions();
}

}  // namespace

/// The environment may have turned checks on before the driver was loaded, so the library is asked once.
std::uint32_t checks_that_raise() noexcept {
    std::uint32_t checks = detail::raised_checks.load();
    if (checks != detail::unknown_checks) return checks;
    if (Driver::existing() == nullptr) return 0;
    const EmulatedFunctions* emulated = emulated_functions();
    detail::raised_checks.compare_exchange_strong(checks,
                                                  emulated == nullptr ? 0 : emulated->checks() & ~leaks_bit);
    return detail::raised_checks.load();
}

void detail::raise_new_findings() {
    if (checks_that_raise() != 0) raise_findings(take_findings());
}

void raise_findings(std::vector<Finding> findings) {
    if (findings.empty()) return;
    if (findings.front().kind == "races") throw RaceError(std::move(findings));
    throw CheckError(std::move(findings));
}

std::uint32_t find_checks(const std::string& list) {
    // Never closed, because the driver of this process may be the same library.
    static const DynamicLibrary& library = *new DynamicLibrary(open_emulated_library());
    const EmulatedFunctions emulated = find_emulated_functions(library);
    std::uint32_t all = 0;
    for (std::size_t begin = 0; begin < list.size();) {
        const std::size_t end = std::min(list.find(',', begin), list.size());
        const std::string name = list.substr(begin, end - begin);
        begin = end + 1;
        std::uint32_t found = 0;
        if (emulated.find_checks(name.c_str(), &found) == 0) {
            throw ArgumentError(
                ArgumentError::Kind::value,
                fmt::format("'{}' is not a check. There are: memory,{},all. Names are separated by commas.",
                            name, emulated.check_names()));
        }
        all |= found;
    }
    return all;
}

std::uint32_t set_checks(std::uint32_t checks) {
    const EmulatedFunctions& emulated = Driver::get().require_emulated(
        "kernels run on a GPU, where Bascule cannot check them. Set BASCULE_DEVICE=emulated.");
    const std::uint32_t before = emulated.set_checks(checks);
    detail::raised_checks.store(emulated.checks() & ~leaks_bit);
    return before;
}

std::vector<Finding> take_findings() {
    std::vector<Finding> all;
    const EmulatedFunctions* emulated = emulated_functions();
    if (emulated == nullptr) return all;
    for (std::string& race : emulated->new_races()) {
        all.emplace_back().kind = "races";
        all.back().report = std::move(race);
    }
    if ((checks_that_raise() & ~races_bit) == 0) return all;
    const FindingDescriber describe = finding_describer.load();
    for (EmulatedFinding& found : emulated->new_findings())
        all.push_back(describe == nullptr ? std::move(found.finding) : describe(std::move(found)));
    return all;
}

void set_finding_describer(FindingDescriber describe) noexcept { finding_describer.store(describe); }

void finish_devices() noexcept {
    if (Driver::existing() == nullptr) return;
    try {
        for (const Device device : Device::used()) {
            const ContextGuard context(device.context());
            Driver::existing()->api().cuCtxSynchronize();
        }
    } catch (...) {  // out of memory, or the driver is gone
    }
}

}  // namespace bascule
