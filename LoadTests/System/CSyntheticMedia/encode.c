#include "CSyntheticMedia.h"
#include "picture.h"
#include <math.h>
#include <opus.h>
#include <stdlib.h>
#include <vpx/vp8cx.h>
#include <vpx/vpx_encoder.h>

int synthetic_vp8(int width, int height, int frames_per_second, int kilobits_per_second, int frames, int key_interval,
                  synthetic_frame_sink sink, void *context) {
    vpx_codec_enc_cfg_t config;
    vpx_codec_err_t error = vpx_codec_enc_config_default(vpx_codec_vp8_cx(), &config, 0);
    if (error) return error;
    config.g_w = width;
    config.g_h = height;
    config.g_timebase.num = 1;
    config.g_timebase.den = frames_per_second;
    config.rc_target_bitrate = kilobits_per_second;
    config.rc_end_usage = VPX_CBR;
    config.rc_buf_sz = 600;
    config.rc_buf_initial_sz = 400;
    config.rc_buf_optimal_sz = 500;
    config.rc_max_quantizer = 56;
    config.g_error_resilient = VPX_ERROR_RESILIENT_DEFAULT;
    config.kf_mode = VPX_KF_DISABLED;
    vpx_codec_ctx_t encoder;
    if ((error = vpx_codec_enc_init(&encoder, vpx_codec_vp8_cx(), &config, 0))) return error;
    vpx_codec_control(&encoder, VP8E_SET_CPUUSED, -10);
    vpx_image_t *picture = vpx_img_alloc(NULL, VPX_IMG_FMT_I420, width, height, 16);
    uint32_t noise = 7;
    for (int n = 0; n < frames && !error; n++) {
        synthetic_draw(picture, n, &noise);
        vpx_enc_frame_flags_t flags = n % key_interval == 0 ? VPX_EFLAG_FORCE_KF : 0;
        error = vpx_codec_encode(&encoder, picture, n, 1, flags, VPX_DL_REALTIME);
        vpx_codec_iter_t iterator = NULL;
        const vpx_codec_cx_pkt_t *packet;
        while (!error && (packet = vpx_codec_get_cx_data(&encoder, &iterator)))
            if (packet->kind == VPX_CODEC_CX_FRAME_PKT)
                sink(context, packet->data.frame.buf, packet->data.frame.sz,
                     (packet->data.frame.flags & VPX_FRAME_IS_KEY) != 0);
    }
    vpx_img_free(picture);
    vpx_codec_destroy(&encoder);
    return error;
}

int synthetic_opus(int kilobits_per_second, int frames, synthetic_frame_sink sink, void *context) {
    int error = 0;
    OpusEncoder *encoder = opus_encoder_create(48000, 1, OPUS_APPLICATION_VOIP, &error);
    if (error != OPUS_OK) return error;
    opus_encoder_ctl(encoder, OPUS_SET_BITRATE(kilobits_per_second * 1000));
    for (int n = 0; n < frames; n++) {
        int16_t samples[960];
        uint8_t bytes[1275];
        for (int i = 0; i < 960; i++) {
            double t = (n * 960 + i) / 48000.0;
            samples[i] = (int16_t)(7000 * sin(6.2831853 * 220 * t) * (0.6 + 0.4 * sin(6.2831853 * 0.5 * t)));
        }
        int length = opus_encode(encoder, samples, 960, bytes, sizeof bytes);
        if (length < 0) {
            opus_encoder_destroy(encoder);
            return length;
        }
        sink(context, bytes, (size_t)length, 1);
    }
    opus_encoder_destroy(encoder);
    return 0;
}
