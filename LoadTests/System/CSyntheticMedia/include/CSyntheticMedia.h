#pragma once
// Real encoders for synthetic publishers: a moving image through libvpx or OpenH264, a speech-like tone through libopus. Run once at
// start; the output is replayed as a loop. Also their decoders, for subscribers that decode.
#include <stddef.h>
#include <stdint.h>

/// Receives one encoded frame. `is_key`: decoding can start with it.
typedef void (*synthetic_frame_sink)(void *context, const uint8_t *bytes, size_t length, int is_key);

/// Encodes `frames` frames as VP8 with a constant bit rate; the first one and every `key_interval`th is a keyframe.
/// Returns 0, or a libvpx error code.
int synthetic_vp8(int width, int height, int frames_per_second, int kilobits_per_second, int frames, int key_interval,
                  synthetic_frame_sink sink, void *context);

/// Encodes `frames` frames as H.264, constrained baseline, one slice each, as byte streams with start codes; the first one is a
/// keyframe with its parameter sets. Returns 0, or an OpenH264 error code.
int synthetic_h264(int width, int height, int frames_per_second, int kilobits_per_second, int frames,
                   synthetic_frame_sink sink, void *context);

/// Encodes `frames` frames of 20 ms, mono, 48 kHz. Returns 0, or a libopus error code.
int synthetic_opus(int kilobits_per_second, int frames, synthetic_frame_sink sink, void *context);

/// A VP8 decoder; NULL if libvpx cannot create one.
void *synthetic_decoder_new(void);
/// Decodes one frame; 1 if it produced an image, 0 if not, -1 if the frame is broken.
int synthetic_decode(void *decoder, const uint8_t *bytes, size_t length, int *width, int *height);
void synthetic_decoder_free(void *decoder);

/// The same for H.264: a byte stream with start codes.
void *synthetic_h264_decoder_new(void);
int synthetic_h264_decode(void *decoder, const uint8_t *bytes, size_t length, int *width, int *height);
void synthetic_h264_decoder_free(void *decoder);
