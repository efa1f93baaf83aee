#pragma once

/// A file that is part of the program, and the path under which it is served.
struct embedded_file {
    const char *path;
    const unsigned char *bytes;
    unsigned long byte_count;
};

struct embedded_files {
    const struct embedded_file *first;
    unsigned long count;
};

/// The console's pages, styles and scripts, and the JavaScript module.
struct embedded_files embedded_console_files(void);

/// The description of the control API (OpenAPI).
struct embedded_file embedded_api_description(void);
