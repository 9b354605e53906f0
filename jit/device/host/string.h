// memcpy and memset are built in: a text may include <string.h> and needs nothing of it.
#pragma once
