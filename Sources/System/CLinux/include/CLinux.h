#pragma once
// Linux calls that Glibc's Swift overlay lacks. No logic.
#include <sys/epoll.h>
#include <sys/eventfd.h>
