#pragma once
// libsoup as a client of the load generator and of tests, with what Swift does not import. It has no logic.
#include <libsoup/soup.h>

/// A client session; the properties can only be set while it is made.
static inline SoupSession *csoup_session_new(int connections, int connections_per_host) {
    return soup_session_new_with_options("max-conns", connections, "max-conns-per-host", connections_per_host, NULL);
}
