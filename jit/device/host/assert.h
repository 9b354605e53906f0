// assert is built in: a text may include <assert.h> and needs nothing of it.
#pragma once
