// The definitions of what doctest.h only declares in other files.
#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>
