// printf is built in: a text may include <stdio.h> and needs nothing of it.
#pragma once
