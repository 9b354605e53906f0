#include "report/unread.hpp"

#include <atomic>
#include <cstdio>

namespace emulated::report {
namespace {

std::atomic<bool> wanted{false}, has_reader{false};

}  // namespace

void write_unread_reports() noexcept { wanted.store(true); }

void expect_reader() noexcept { has_reader.store(true); }

void tell(const std::string& report) noexcept {
    if (wanted.load() && !has_reader.load()) std::fprintf(stderr, "bascule: %s\n", report.c_str());
}

}  // namespace emulated::report
