// Tests that members of values are written to bytes and read back, and the text that describes their format.
#include <array>

#include <doctest/doctest.h>

#include <bascule/jit/files/record.hpp>

namespace bascule::testing::record_format {

enum class Color { red, green };
enum class OneMore { red, blue, green };

struct Leaf {
    std::int32_t count = 0;
    Color color = Color::red;
    bool yes = false;
};
struct Tree {
    std::string name;
    std::vector<Leaf> leaves;
    std::optional<double> height;
    std::pair<std::string, std::string> both;
};
struct Other {
    std::uint32_t count = 0;
    std::uint32_t size = 0;
    OneMore color = OneMore::red;
};

template <class R>
void pass_members(R& record, Leaf& leaf) {
    record.template choice<Color::green>(leaf.color);
    record.BASCULE_MEMBERS(leaf.count, leaf.yes);
}
template <class R>
void pass_members(R& record, Tree& tree) {
    record.BASCULE_MEMBERS(tree.name, tree.leaves, tree.height, tree.both);
}

namespace {

template <class T>
std::string format_of(T value) {
    FormatText text;
    Record(text).pass(value);
    return std::move(text).take();
}

template <class Pass>
std::string format_by(const Pass& pass) {
    FormatText text;
    Record record(text);
    Other other;
    pass(record, other);
    return std::move(text).take();
}

}  // namespace

TEST_CASE("what is written is read") {
    Tree tree{"oak", {{-3, Color::green, true}, {7, Color::red, false}}, 2.5, {"a", "b"}};
    ByteWriter out;
    Record(out).pass(tree);
    const std::string bytes = std::move(out).take();
    ByteReader in(bytes);
    Tree read;
    Record(in).pass(read);
    CHECK(in.at_end());
    CHECK(read.name == "oak");
    REQUIRE(read.leaves.size() == 2);
    CHECK(read.leaves[0].count == -3);
    CHECK(read.leaves[0].color == Color::green);
    CHECK(read.leaves[0].yes);
    CHECK(read.height == 2.5);
    CHECK(read.both.second == "b");
}

TEST_CASE("the format's text has the names of members and enumerators, and does not depend on values") {
    const std::string text = format_of(Tree{});
    for (const char* part :
         {"tree.name, tree.leaves", "leaf.count", "Color::red", "Color::green", "signed 4"}) {
        CAPTURE(std::string(part));
        CHECK(text.find(part) != text.npos);
    }
    CHECK(text == format_of(Tree{"oak", {{1, Color::green, true}}, 1.0, {}}));
}

TEST_CASE("one enumerator more, another type, another order and another name are other formats") {
    const std::array texts = {
        format_by([](auto& record, Other& other) { record.BASCULE_MEMBERS(other.count, other.size); }),
        format_by([](auto& record, Other& other) { record.BASCULE_MEMBERS(other.size, other.count); }),
        format_by([](auto& record, Other& other) { record.BASCULE_MEMBERS(other.count); }),
        format_by([](auto& record, Other& other) { record.template choice<OneMore::green>(other.color); }),
        format_by([](auto& record, Other& other) { record.template choice<OneMore::blue>(other.color); }),
        format_by([](auto& record, Other&) {
            Color color{};
            record.template choice<Color::green>(color);
        }),
    };
    for (std::size_t i = 0; i < texts.size(); ++i) {
        for (std::size_t j = 0; j < i; ++j) CHECK(texts[i] != texts[j]);
    }
}

}  // namespace bascule::testing::record_format
