// What checks find, as exceptions of the calls that wait, with the user's lines.
#include <string>

#include <doctest/doctest.h>

#include <bascule/interface/errors/error.hpp>
#include <bascule/runtime/driver/found_errors.hpp>
#include <bascule/runtime/faults/failure_details.hpp>
#include <bascule/runtime/faults/finding_details.hpp>
#include <bascule/runtime/streams/event.hpp>

#include "support.hpp"

using namespace bascule;
using namespace bascule::testing;

namespace {

/// Turns on checks of a list while it lives.
class Checks {
  public:
    explicit Checks(const std::string& list) : before_(set_checks(find_checks(list))) {}
    ~Checks() { set_checks(before_); }
    Checks(Checks&&) = delete;

  private:
    std::uint32_t before_;
};

/// A kernel whose threads divide 7 by an argument.
struct Division {
    void launch(std::int64_t by, const std::string& place = "train.py:3: divide()") {
        ArgumentPack args(kernel.signature());
        args.set(0, floats(buffer));
        args.set(1, integer(by));
        kernel.launch(stream, {.grid = {1}, .block = {8}}, args, {}, LaunchSite::of(place));
    }

    TestModule program{"__global__ void divide(float* y, int n) {\n    y[threadIdx.x] = 7 / n;\n}\n"};
    Kernel kernel = program.module.kernel("divide");
    Stream stream;
    DeviceBuffer buffer{32};
};

/// The index that is reported for an access of 4 bytes in line 2 of a kernel `k(float* y, const int* x, int n)`, at the
/// element 3 of `y`.
std::string index_in(const std::string& line,
                     const std::string& parameters = "float* y, const int* x, int n") {
    const Source source = TestModule::source_of("__global__ void k(" + parameters + ") {\n" + line + "\n}\n");
    remember_place(source);
    EmulatedFinding found;
    found.finding.kernel = "k";
    found.finding.file = canonical_name(source.text);
    found.finding.line = 2;
    found.finding.space = "global";
    found.finding.address = 0x100c;
    found.finding.bytes = 4;
    found.arguments = {0x1000, 0, 0};
    return complete_finding(found).index;
}

}  // namespace

TEST_CASE("a wait throws what a check found, with the user's line, the launch and how often it happened") {
    Division d;
    const Checks checks("division");
    d.launch(1);
    d.stream.ref().synchronize();
    d.launch(0);
    try {
        d.stream.ref().synchronize();
        FAIL("nothing was thrown");
    } catch (const CheckError& error) {
        CHECK(std::string(error.name()) == "CheckError");
        CHECK(error.kind() == "division");
        REQUIRE(error.findings().size() == 1);
        const Finding& found = error.findings().front();
        CHECK(found.kernel == "divide");
        CHECK(found.what == "divided an integer by zero");
        CHECK(found.file == "test.cu");
        CHECK(found.line == 2);
        CHECK(found.source_line == "y[threadIdx.x] = 7 / n;");
        CHECK(found.thread == std::array<std::uint32_t, 3>{0, 0, 0});
        CHECK(found.count == 8);
        CHECK(found.launch == "train.py:3: divide()");
        CHECK(error.what() == found.report);
        CHECK(found.report.find("at test.cu:2: y[threadIdx.x] = 7 / n;") != std::string::npos);
        CHECK(found.report.find("launched at train.py:3: divide()") != std::string::npos);
    }
    d.stream.ref().synchronize();  // it is thrown once
}

TEST_CASE("every call that waits throws what a check found") {
    Division d;
    const Checks checks("division");
    const auto launched = [&] { d.launch(0); };
    launched();
    CHECK_THROWS_AS(synchronize(Device::current()), CheckError);
    launched();
    Event event;
    event.ref().record(d.stream);
    CHECK_THROWS_AS(event.ref().synchronize(), CheckError);
    launched();
    const auto query = [&] {
        while (!d.stream.ref().query()) {
        }
    };
    CHECK_THROWS_AS(query(), CheckError);
    CHECK_NOTHROW(synchronize(Device::current()));
}

TEST_CASE("nothing is thrown for a check that is off") {
    Division d;
    const Checks checks("races");
    d.launch(0);
    CHECK_NOTHROW(d.stream.ref().synchronize());
}

TEST_CASE("a list of checks is read by the emulated device, and an unknown name lists all") {
    CHECK(find_checks("") == 0);
    CHECK(find_checks("memory") == 0);
    CHECK(find_checks("races") == BASCULE_EMULATED_CHECK_RACES);
    CHECK(find_checks("races,division") == (find_checks("races") | find_checks("division")));
    CHECK((find_checks("all") & find_checks("division")) != 0);
    CHECK((find_checks("all") & BASCULE_EMULATED_CHECK_LEAKS) == 0);
    try {
        find_checks("races,speed");
        FAIL("nothing was thrown");
    } catch (const ArgumentError& error) {
        CHECK(error.kind() == ArgumentError::Kind::value);
        const std::string said = error.what();
        CHECK(said.find("'speed' is not a check. There are: memory,races,") == 0);
    }
}

TEST_CASE("races come first, and an error with one is a RaceError that has the other findings too") {
    std::vector<Finding> findings(7);
    for (Finding& each : findings) each.kind = "init", each.report = "init: a report";
    CHECK_NOTHROW(raise_findings({}));
    CHECK_THROWS_WITH_AS(raise_findings({findings[0]}), "init: a report", CheckError);
    findings.front().kind = "races";
    findings.front().report = "stream race: a report";
    try {
        raise_findings(findings);
        FAIL("nothing was thrown");
    } catch (const RaceError& error) {
        CHECK(error.kind() == "races");
        CHECK(error.races() == std::vector<std::string>{"stream race: a report"});
        CHECK(error.findings().size() == 7);
        const std::string said = error.what();
        CHECK(said.starts_with("stream race: a report\n\ninit: a report"));
        CHECK(said.ends_with("and 2 more, in the attribute `findings`. Fix the first error and rerun."));
    }
}

TEST_CASE("an index is told if the access can only be that of the line's subscript") {
    CHECK(index_in("y[n + 1] = 2 * n;") == "y[n + 1] is y[3]");
    CHECK(index_in("    if (n < 4) y[blockIdx.x * 4 + n] += 1.5f;") == "y[blockIdx.x * 4 + n] is y[3]");
    CHECK(index_in("y[n] = x[n];") == "y[n] is y[3]");
    CHECK(index_in("n = n * y[x[n] + x[0]];") == "y[x[n] + x[0]] is y[3]");
    CHECK(index_in("n = y[(n)]; }\n__device__ void f(float* y) { y += 1;",
                   "const volatile int *y, const int* x, int n") == "y[(n)] is y[3]");
    CHECK(index_in("y[n] = 1;", "float* __restrict__ y, const int* x, int n") == "y[n] is y[3]");
}

TEST_CASE("an index is not told if another access is possible, or if it would say nothing new") {
    CHECK(index_in("y[3] = 1;").empty());
    CHECK(index_in("y[n] = y[n + 1];").empty());
    CHECK(index_in("x[n] = 1;").empty());  // the address is not in x
    CHECK(index_in("*y = y[n];").empty());
    CHECK(index_in("y[n] = 1; y += n;").empty());  // y may have changed
    CHECK(index_in("++y; y[n] = 1;").empty());
    CHECK(index_in("float y[4]; y[n] = 1;").empty());  // another y
    CHECK(index_in("n = 1; float *y[4]; y[n] = 1;").empty());
    CHECK(index_in("n = s.y[n];").empty());
    CHECK(index_in("n = p->y[n];").empty());
    CHECK(index_in("float* p = &y[n]; *p = 1;").empty());
    CHECK(index_in("y[n] = 1;", "double* y, const int* x, int n").empty());  // elements of 8 bytes
    CHECK(index_in("y[n] = 1;", "float2* y, const int* x, int n").empty());
    CHECK(index_in("y[n] = 1;", "float* y, int n").empty());  // the kernel has other parameters
}
