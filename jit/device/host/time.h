// clock and clock64 are built in: a text may include <time.h> and needs nothing of it.
#pragma once
