#include "CSyntheticMedia.h"
#include <stdlib.h>
#include <vpx/vp8dx.h>
#include <vpx/vpx_decoder.h>

void *synthetic_decoder_new(void) {
    vpx_codec_ctx_t *decoder = calloc(1, sizeof *decoder);
    if (decoder && vpx_codec_dec_init(decoder, vpx_codec_vp8_dx(), NULL, 0) != VPX_CODEC_OK) {
        free(decoder);
        return NULL;
    }
    return decoder;
}

int synthetic_decode(void *context, const uint8_t *bytes, size_t length, int *width, int *height) {
    vpx_codec_ctx_t *decoder = context;
    if (vpx_codec_decode(decoder, bytes, (unsigned)length, NULL, 0) != VPX_CODEC_OK) return -1;
    vpx_codec_iter_t iterator = NULL;
    const vpx_image_t *picture = vpx_codec_get_frame(decoder, &iterator);
    if (!picture) return 0;
    int corrupted = 0;
    vpx_codec_control(decoder, VP8D_GET_FRAME_CORRUPTED, &corrupted);
    *width = (int)picture->d_w;
    *height = (int)picture->d_h;
    return corrupted ? -1 : 1;
}

void synthetic_decoder_free(void *context) {
    vpx_codec_ctx_t *decoder = context;
    vpx_codec_destroy(decoder);
    free(decoder);
}
