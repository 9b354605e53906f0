// The streams that a launch is ordered with, as collected by the argument pack.
#include "support.hpp"

namespace bascule::testing {
namespace {

Signature three_pointers() {
    const Parameter p = pointer_parameter("float*", "<f4");
    return signature({p, p, p});
}

TEST_CASE("equal streams are named once, in the order of the arguments") {
    const Signature declared = three_pointers();
    ArgumentPack pack(declared);
    pack.set(0, with_stream(7));
    pack.set(1, with_stream(1));
    pack.set(2, with_stream(7));
    REQUIRE(pack.producers().size() == 2);
    CHECK(pack.producers()[0].stream.handle == 7);
    CHECK(pack.producers()[0].argument == 0);
    CHECK(pack.producers()[1].stream.handle == 1);
    CHECK(pack.producers()[1].argument == 1);
}

TEST_CASE("a refused array leaves no producer behind") {
    const Signature declared = three_pointers();
    ArgumentPack pack(declared);
    ArrayView readonly = with_stream(7);
    readonly.readonly = true;
    CHECK(caught([&] { pack.set(0, readonly); }));
    CHECK(pack.producers().empty());
}

TEST_CASE("the common stream is the one that every array names") {
    struct Row {
        std::uint64_t streams[3];  ///< 0: names none
        std::uint64_t common;      ///< 0: there is none
    };
    constexpr Row rows[] = {{{7, 7, 7}, 7}, {{7, 7, 1}, 0}, {{7, 7, 0}, 0}, {{0, 0, 0}, 0}, {{2, 2, 2}, 2}};
    const Signature declared = three_pointers();
    for (const Row& row : rows) {
        ArgumentPack pack(declared);
        for (int i = 0; i < 3; ++i) {
            pack.set(i, row.streams[i] == 0 ? array("<f4", {8}) : with_stream(row.streams[i]));
        }
        CHECK(pack.common_stream().value_or(0) == row.common);
    }
}

TEST_CASE("scalars and null pointers have no say in the common stream") {
    const Signature declared =
        signature({pointer_parameter("float*", "<f4"), scalar_parameter("float", "<f4"),
                   pointer_parameter("float*", "<f4")});
    ArgumentPack pack(declared);
    CHECK_FALSE(pack.common_stream());
    pack.set(0, with_stream(7));
    pack.set(1, integer(2));
    pack.set(2, std::monostate());
    CHECK(pack.common_stream().value_or(0) == 7);
}

TEST_CASE("more producers than arguments are kept") {
    const Signature declared = three_pointers();
    ArgumentPack pack(declared);
    for (std::uint64_t stream = 1; stream <= 100; ++stream) pack.add_producer({stream}, 0);
    pack.add_producer({50}, 2);
    REQUIRE(pack.producers().size() == 100);
    for (std::uint64_t stream = 1; stream <= 100; ++stream)
        CHECK(pack.producers()[stream - 1].stream.handle == stream);
}

}  // namespace
}  // namespace bascule::testing
