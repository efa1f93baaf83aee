#include "picture.h"

void synthetic_draw(vpx_image_t *picture, int n, uint32_t *noise) {
    for (unsigned y = 0; y < picture->d_h; y++) {
        uint8_t *row = picture->planes[0] + y * picture->stride[0];
        for (unsigned x = 0; x < picture->d_w; x++) {
            *noise = *noise * 1664525u + 1013904223u;
            int bar = ((int)x + 4 * n) % 160 < 24 ? 60 : 0;
            row[x] = (uint8_t)(40 + (x + y + 2 * n) % 120 + bar + (*noise >> 28));
        }
    }
    for (int plane = 1; plane < 3; plane++)
        for (unsigned y = 0; y < (picture->d_h + 1) / 2; y++)
            for (unsigned x = 0; x < (picture->d_w + 1) / 2; x++)
                picture->planes[plane][y * picture->stride[plane] + x] = (uint8_t)(96 + (x + plane * n) % 64);
}
