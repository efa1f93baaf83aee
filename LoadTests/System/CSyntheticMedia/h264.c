#include "CSyntheticMedia.h"
#include "picture.h"
#include <stdlib.h>
#include <string.h>
#include <wels/codec_api.h>

// One slice per frame, constrained baseline, no frame skipped: what browsers send, fragmented into FU-A by the packetizer.
static int configure(ISVCEncoder *encoder, int width, int height, int frames_per_second, int kilobits_per_second) {
    int quiet = WELS_LOG_QUIET, format = videoFormatI420;
    (*encoder)->SetOption(encoder, ENCODER_OPTION_TRACE_LEVEL, &quiet);
    SEncParamExt settings;
    int error = (*encoder)->GetDefaultParams(encoder, &settings);
    if (error) return error;
    settings.iUsageType = CAMERA_VIDEO_REAL_TIME;
    settings.iPicWidth = width;
    settings.iPicHeight = height;
    settings.fMaxFrameRate = (float)frames_per_second;
    settings.iTargetBitrate = settings.iMaxBitrate = kilobits_per_second * 1000;
    settings.iRCMode = RC_BITRATE_MODE;
    settings.bEnableFrameSkip = false;
    settings.uiIntraPeriod = 0;
    settings.iMultipleThreadIdc = 1;
    settings.eSpsPpsIdStrategy = CONSTANT_ID;
    settings.sSpatialLayers[0].iVideoWidth = width;
    settings.sSpatialLayers[0].iVideoHeight = height;
    settings.sSpatialLayers[0].fFrameRate = (float)frames_per_second;
    settings.sSpatialLayers[0].iSpatialBitrate = settings.iTargetBitrate;
    settings.sSpatialLayers[0].iMaxSpatialBitrate = settings.iTargetBitrate;
    settings.sSpatialLayers[0].uiProfileIdc = PRO_BASELINE;
    settings.sSpatialLayers[0].sSliceArgument.uiSliceMode = SM_SINGLE_SLICE;
    if ((error = (*encoder)->InitializeExt(encoder, &settings))) return error;
    return (*encoder)->SetOption(encoder, ENCODER_OPTION_DATAFORMAT, &format);
}

static int encode(ISVCEncoder *encoder, vpx_image_t *image, int n, int frames_per_second, synthetic_frame_sink sink,
                  void *context) {
    SSourcePicture picture = {0};
    picture.iColorFormat = videoFormatI420;
    picture.iPicWidth = (int)image->d_w;
    picture.iPicHeight = (int)image->d_h;
    picture.uiTimeStamp = (long long)n * 1000 / frames_per_second;
    for (int plane = 0; plane < 3; plane++) {
        picture.iStride[plane] = image->stride[plane];
        picture.pData[plane] = image->planes[plane];
    }
    SFrameBSInfo result = {0};
    int error = (*encoder)->EncodeFrame(encoder, &picture, &result);
    if (error) return error;
    uint8_t *bytes = malloc((size_t)result.iFrameSizeInBytes + 1);
    size_t length = 0;
    for (int layer = 0; layer < result.iLayerNum; layer++) {
        int size = 0;
        for (int nal = 0; nal < result.sLayerInfo[layer].iNalCount; nal++)
            size += result.sLayerInfo[layer].pNalLengthInByte[nal];
        memcpy(bytes + length, result.sLayerInfo[layer].pBsBuf, (size_t)size);
        length += (size_t)size;
    }
    if (length > 0) sink(context, bytes, length, result.eFrameType == videoFrameTypeIDR);
    free(bytes);
    return length > 0 ? 0 : -1;
}

int synthetic_h264(int width, int height, int frames_per_second, int kilobits_per_second, int frames,
                   synthetic_frame_sink sink, void *context) {
    ISVCEncoder *encoder = NULL;
    int error = WelsCreateSVCEncoder(&encoder);
    if (error) return error;
    error = configure(encoder, width, height, frames_per_second, kilobits_per_second);
    vpx_image_t *image = vpx_img_alloc(NULL, VPX_IMG_FMT_I420, (unsigned)width, (unsigned)height, 16);
    uint32_t noise = 7;
    for (int n = 0; n < frames && !error; n++) {
        synthetic_draw(image, n, &noise);
        error = encode(encoder, image, n, frames_per_second, sink, context);
    }
    vpx_img_free(image);
    (*encoder)->Uninitialize(encoder);
    WelsDestroySVCEncoder(encoder);
    return error;
}

void *synthetic_h264_decoder_new(void) {
    ISVCDecoder *decoder = NULL;
    if (WelsCreateDecoder(&decoder)) return NULL;
    int quiet = WELS_LOG_QUIET;
    (*decoder)->SetOption(decoder, DECODER_OPTION_TRACE_LEVEL, &quiet);
    SDecodingParam settings = {0};
    settings.uiTargetDqLayer = 255;
    settings.eEcActiveIdc = ERROR_CON_DISABLE;
    settings.sVideoProperty.eVideoBsType = VIDEO_BITSTREAM_AVC;
    if ((*decoder)->Initialize(decoder, &settings)) {
        WelsDestroyDecoder(decoder);
        return NULL;
    }
    return decoder;
}

int synthetic_h264_decode(void *context, const uint8_t *bytes, size_t length, int *width, int *height) {
    ISVCDecoder *decoder = context;
    uint8_t *planes[3] = {0};
    SBufferInfo info = {0};
    if ((*decoder)->DecodeFrameNoDelay(decoder, bytes, (int)length, planes, &info)) return -1;
    if (info.iBufferStatus != 1) return 0;
    *width = info.UsrData.sSystemBuffer.iWidth;
    *height = info.UsrData.sSystemBuffer.iHeight;
    return 1;
}

void synthetic_h264_decoder_free(void *context) {
    ISVCDecoder *decoder = context;
    (*decoder)->Uninitialize(decoder);
    WelsDestroyDecoder(decoder);
}
