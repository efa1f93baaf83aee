#pragma once
#include <stdint.h>
#include <vpx/vpx_image.h>

/// Draws frame `n`: a slow gradient with a moving bar and a little noise, enough texture for an encoder to spend its bit rate.
void synthetic_draw(vpx_image_t *picture, int n, uint32_t *noise);
