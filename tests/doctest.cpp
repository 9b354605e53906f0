// What doctest.h only declares elsewhere.
#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>
