// bool is built in: a text may include <stdbool.h> and needs nothing of it.
#pragma once
