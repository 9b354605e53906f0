#include <doctest/doctest.h>

#include <bascule/interface/errors/wording.hpp>

using bascule::edit_distance;
using bascule::nearest_name;

TEST_CASE("the_distance_counts_added_removed_changed_and_swapped_letters") {
    CHECK(edit_distance("scale", "scale") == 0);
    CHECK(edit_distance("scale", "scales") == 1);
    CHECK(edit_distance("scale", "cale") == 1);
    CHECK(edit_distance("scale", "scape") == 1);
    CHECK(edit_distance("scale", "sacle") == 1);
    CHECK(edit_distance("", "abc") == 3);
    CHECK(edit_distance("kitten", "sitting") == 3);  // the textbook's example
}

TEST_CASE("the_nearest_name_wins_and_a_far_one_is_not_offered") {
    CHECK(nearest_name("scael", {"blur", "scale", "shape"}) == "scale");
    CHECK(nearest_name("convolve", {"blur", "scale"}).empty());
    CHECK(nearest_name("x", {"ab"}).empty());
    CHECK(nearest_name("anything", {}).empty());
}
