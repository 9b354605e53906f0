#include <filesystem>
#include <string>

#include <doctest/doctest.h>

#include <bascule/jit/lookup/memory_cache.hpp>

#include "support.hpp"

namespace bascule::testing {
namespace {

CacheKey key(const std::string& text) { return {text, {1, 1}}; }

std::shared_ptr<const Image> image_with(const std::string& ptx) {
    auto image = std::make_shared<Image>();
    image->ptx = ptx;
    return image;
}

TEST_CASE("keys with equal hashes and different texts are different") {
    MemoryCache cache;
    cache.keep(key("a"), {image_with("of a"), nullptr});
    CHECK(cache.find(key("b"), {""}).image == nullptr);
    CHECK(cache.find(key("a"), {""}).image->ptx == "of a");
    cache.clear();
    CHECK(cache.find(key("a"), {""}).image == nullptr);
}

TEST_CASE("eight header states of one program are kept, and the oldest gives way") {
    const TemporaryDirectory directory;
    MemoryCache cache;
    const auto entry = [&](int number) {
        auto headers = std::make_shared<HeaderManifest>();
        headers->user.places.push_back({directory.path() + "/" + std::to_string(number), PlaceKind::file});
        return CacheEntry{image_with(std::to_string(number)), headers};
    };
    for (int number = 0; number < 9; ++number) cache.keep(key("a"), entry(number));
    CHECK(cache.find(key("a"), {""}).image == nullptr);
    directory.write("3", "");
    REQUIRE(cache.find(key("a"), {""}).image != nullptr);
    CHECK(cache.find(key("a"), {""}).image->ptx == "3");
    std::filesystem::remove(directory.path() + "/3");
    directory.write("0", "");
    CHECK(cache.find(key("a"), {""}).image == nullptr);
}

}  // namespace
}  // namespace bascule::testing
