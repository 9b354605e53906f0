// Messages about what is compiled, through Python's logging.
#pragma once

namespace bascule::python {

/// From now on Python's loggers "bascule.cache" and "bascule.jit" get the messages.
void log_by_python() noexcept;

}  // namespace bascule::python
