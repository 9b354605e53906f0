#include <doctest/doctest.h>

#include <bascule/runtime/graphs/graph.hpp>
#include <bascule/runtime/lifetime/host_function.hpp>

#include "support.hpp"

using namespace bascule;
using namespace bascule::testing;

TEST_CASE("a function of the host is called in the order of its stream, and its owners are released") {
    const Stream stream;
    int calls = 0, releases = 0;
    void* owner = &releases;
    launch_host_function(
        stream, [](void* count) { ++*static_cast<int*>(count); }, &calls,
        Owners(&owner, 1, &count_releases<int>, 0));
    stream.synchronize();
    CHECK(calls == 1);
    CHECK(releases == 1);
}

TEST_CASE("a function of the host in a graph is called by each launch") {
    const Stream stream;
    int calls = 0, releases = 0;
    void* owner = &releases;
    {
        Graph graph;
        graph.begin();
        launch_host_function(
            graph.stream(), [](void* count) { ++*static_cast<int*>(count); }, &calls,
            Owners(&owner, 1, &count_releases<int>, 0));
        graph.end();
        CHECK(graph.size() == 1);
        for (int times = 1; times <= 3; ++times) {
            graph.launch(stream);
            stream.synchronize();
            CHECK(calls == times);
        }
        CHECK(releases == 0);
    }
    stream.synchronize();
    CHECK(releases == 1);
}
