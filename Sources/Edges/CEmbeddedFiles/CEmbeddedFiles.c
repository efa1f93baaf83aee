// The files that are part of the program. `#embed` takes the compiler no time, while an array of numbers in Swift took it a minute, and the compiler
// records each file as a dependency, so that a changed file is rebuilt. A new file needs its lines here and one in the table;
// ConsoleTests load everything that the pages request.
#include "CEmbeddedFiles.h"

#pragma clang diagnostic ignored "-Wc23-extensions"

#define EMBEDDED(name) name, sizeof name

static const unsigned char page_index_html[] = {
#embed "../Console/Page/index.html"
};
static const unsigned char page_check_html[] = {
#embed "../Console/Page/check.html"
};
static const unsigned char page_reference_html[] = {
#embed "../Console/Page/reference.html"
};
static const unsigned char page_examples_html[] = {
#embed "../Console/Page/examples.html"
};
static const unsigned char module_martlet_js[] = {
#embed "../Console/Module/martlet.js"
};
static const unsigned char module_capture_js[] = {
#embed "../Console/Module/martlet/capture.js"
};
static const unsigned char module_channels_js[] = {
#embed "../Console/Module/martlet/channels.js"
};
static const unsigned char module_errors_js[] = {
#embed "../Console/Module/martlet/errors.js"
};
static const unsigned char module_files_js[] = {
#embed "../Console/Module/martlet/files.js"
};
static const unsigned char module_participants_js[] = {
#embed "../Console/Module/martlet/participants.js"
};
static const unsigned char module_people_js[] = {
#embed "../Console/Module/martlet/people.js"
};
static const unsigned char module_publications_js[] = {
#embed "../Console/Module/martlet/publications.js"
};
static const unsigned char module_publishing_js[] = {
#embed "../Console/Module/martlet/publishing.js"
};
static const unsigned char module_receiving_js[] = {
#embed "../Console/Module/martlet/receiving.js"
};
static const unsigned char module_room_js[] = {
#embed "../Console/Module/martlet/room.js"
};
static const unsigned char module_signal_js[] = {
#embed "../Console/Module/martlet/signal.js"
};
static const unsigned char page_style_css[] = {
#embed "../Console/Page/style.css"
};
static const unsigned char page_room_css[] = {
#embed "../Console/Page/room.css"
};
static const unsigned char page_chat_css[] = {
#embed "../Console/Page/chat.css"
};
static const unsigned char page_operators_css[] = {
#embed "../Console/Page/operators.css"
};
static const unsigned char page_screens_css[] = {
#embed "../Console/Page/screens.css"
};
static const unsigned char page_recordings_css[] = {
#embed "../Console/Page/recordings.css"
};
static const unsigned char page_check_css[] = {
#embed "../Console/Page/check.css"
};
static const unsigned char page_examples_css[] = {
#embed "../Console/Page/examples.css"
};
static const unsigned char page_reference_css[] = {
#embed "../Console/Page/reference.css"
};
static const unsigned char page_martlet_svg[] = {
#embed "../Console/Page/martlet.svg"
};
static const unsigned char page_app_js[] = {
#embed "../Console/Page/app.js"
};
static const unsigned char page_media_js[] = {
#embed "../Console/Page/media.js"
};
static const unsigned char page_generated_js[] = {
#embed "../Console/Page/generated.js"
};
static const unsigned char page_call_js[] = {
#embed "../Console/Page/call.js"
};
static const unsigned char page_chat_js[] = {
#embed "../Console/Page/chat.js"
};
static const unsigned char page_roster_js[] = {
#embed "../Console/Page/roster.js"
};
static const unsigned char page_grid_js[] = {
#embed "../Console/Page/grid.js"
};
static const unsigned char page_statistics_js[] = {
#embed "../Console/Page/statistics.js"
};
static const unsigned char page_limits_js[] = {
#embed "../Console/Page/limits.js"
};
static const unsigned char page_outage_js[] = {
#embed "../Console/Page/outage.js"
};
static const unsigned char page_operators_js[] = {
#embed "../Console/Page/operators.js"
};
static const unsigned char page_places_js[] = {
#embed "../Console/Page/places.js"
};
static const unsigned char page_api_js[] = {
#embed "../Console/Page/api.js"
};
static const unsigned char page_elements_js[] = {
#embed "../Console/Page/elements.js"
};
static const unsigned char page_members_js[] = {
#embed "../Console/Page/members.js"
};
static const unsigned char page_member_js[] = {
#embed "../Console/Page/member.js"
};
static const unsigned char page_moment_js[] = {
#embed "../Console/Page/moment.js"
};
static const unsigned char page_chart_js[] = {
#embed "../Console/Page/chart.js"
};
static const unsigned char page_policy_js[] = {
#embed "../Console/Page/policy.js"
};
static const unsigned char page_rules_js[] = {
#embed "../Console/Page/rules.js"
};
static const unsigned char page_impact_js[] = {
#embed "../Console/Page/impact.js"
};
static const unsigned char page_sessions_js[] = {
#embed "../Console/Page/sessions.js"
};
static const unsigned char page_recordings_js[] = {
#embed "../Console/Page/recordings.js"
};
static const unsigned char page_recording_js[] = {
#embed "../Console/Page/recording.js"
};
static const unsigned char page_jobs_js[] = {
#embed "../Console/Page/jobs.js"
};
static const unsigned char page_player_js[] = {
#embed "../Console/Page/player.js"
};
static const unsigned char page_playbacks_js[] = {
#embed "../Console/Page/playbacks.js"
};
static const unsigned char page_events_js[] = {
#embed "../Console/Page/events.js"
};
static const unsigned char page_dialog_js[] = {
#embed "../Console/Page/dialog.js"
};
static const unsigned char page_guests_js[] = {
#embed "../Console/Page/guests.js"
};
static const unsigned char page_names_js[] = {
#embed "../Console/Page/names.js"
};
static const unsigned char page_tokens_js[] = {
#embed "../Console/Page/tokens.js"
};
static const unsigned char page_hue_js[] = {
#embed "../Console/Page/hue.js"
};
static const unsigned char page_roomcharts_js[] = {
#embed "../Console/Page/roomcharts.js"
};
static const unsigned char page_devices_js[] = {
#embed "../Console/Page/devices.js"
};
static const unsigned char page_hands_js[] = {
#embed "../Console/Page/hands.js"
};
static const unsigned char page_check_js[] = {
#embed "../Console/Page/check.js"
};
static const unsigned char page_loopback_js[] = {
#embed "../Console/Page/loopback.js"
};
static const unsigned char page_reference_js[] = {
#embed "../Console/Page/reference.js"
};
static const unsigned char page_schema_js[] = {
#embed "../Console/Page/schema.js"
};
static const unsigned char page_example_js[] = {
#embed "../Console/Page/example.js"
};
static const unsigned char page_examples_js[] = {
#embed "../Console/Page/examples.js"
};
static const unsigned char openapi_json[] = {
#embed "../ControlAPI/openapi.json"
};

static const struct embedded_file console_files[] = {
    {"/", EMBEDDED(page_index_html)},
    {"/check", EMBEDDED(page_check_html)},
    {"/reference", EMBEDDED(page_reference_html)},
    {"/examples", EMBEDDED(page_examples_html)},
    {"/martlet.js", EMBEDDED(module_martlet_js)},
    {"/martlet/capture.js", EMBEDDED(module_capture_js)},
    {"/martlet/channels.js", EMBEDDED(module_channels_js)},
    {"/martlet/errors.js", EMBEDDED(module_errors_js)},
    {"/martlet/files.js", EMBEDDED(module_files_js)},
    {"/martlet/participants.js", EMBEDDED(module_participants_js)},
    {"/martlet/people.js", EMBEDDED(module_people_js)},
    {"/martlet/publications.js", EMBEDDED(module_publications_js)},
    {"/martlet/publishing.js", EMBEDDED(module_publishing_js)},
    {"/martlet/receiving.js", EMBEDDED(module_receiving_js)},
    {"/martlet/room.js", EMBEDDED(module_room_js)},
    {"/martlet/signal.js", EMBEDDED(module_signal_js)},
    {"/console/style.css", EMBEDDED(page_style_css)},
    {"/console/room.css", EMBEDDED(page_room_css)},
    {"/console/chat.css", EMBEDDED(page_chat_css)},
    {"/console/operators.css", EMBEDDED(page_operators_css)},
    {"/console/screens.css", EMBEDDED(page_screens_css)},
    {"/console/recordings.css", EMBEDDED(page_recordings_css)},
    {"/console/check.css", EMBEDDED(page_check_css)},
    {"/console/examples.css", EMBEDDED(page_examples_css)},
    {"/console/reference.css", EMBEDDED(page_reference_css)},
    {"/console/martlet.svg", EMBEDDED(page_martlet_svg)},
    {"/console/app.js", EMBEDDED(page_app_js)},
    {"/console/media.js", EMBEDDED(page_media_js)},
    {"/console/generated.js", EMBEDDED(page_generated_js)},
    {"/console/call.js", EMBEDDED(page_call_js)},
    {"/console/chat.js", EMBEDDED(page_chat_js)},
    {"/console/roster.js", EMBEDDED(page_roster_js)},
    {"/console/grid.js", EMBEDDED(page_grid_js)},
    {"/console/statistics.js", EMBEDDED(page_statistics_js)},
    {"/console/limits.js", EMBEDDED(page_limits_js)},
    {"/console/outage.js", EMBEDDED(page_outage_js)},
    {"/console/operators.js", EMBEDDED(page_operators_js)},
    {"/console/places.js", EMBEDDED(page_places_js)},
    {"/console/api.js", EMBEDDED(page_api_js)},
    {"/console/elements.js", EMBEDDED(page_elements_js)},
    {"/console/members.js", EMBEDDED(page_members_js)},
    {"/console/member.js", EMBEDDED(page_member_js)},
    {"/console/moment.js", EMBEDDED(page_moment_js)},
    {"/console/chart.js", EMBEDDED(page_chart_js)},
    {"/console/policy.js", EMBEDDED(page_policy_js)},
    {"/console/rules.js", EMBEDDED(page_rules_js)},
    {"/console/impact.js", EMBEDDED(page_impact_js)},
    {"/console/sessions.js", EMBEDDED(page_sessions_js)},
    {"/console/recordings.js", EMBEDDED(page_recordings_js)},
    {"/console/recording.js", EMBEDDED(page_recording_js)},
    {"/console/jobs.js", EMBEDDED(page_jobs_js)},
    {"/console/player.js", EMBEDDED(page_player_js)},
    {"/console/playbacks.js", EMBEDDED(page_playbacks_js)},
    {"/console/events.js", EMBEDDED(page_events_js)},
    {"/console/dialog.js", EMBEDDED(page_dialog_js)},
    {"/console/guests.js", EMBEDDED(page_guests_js)},
    {"/console/names.js", EMBEDDED(page_names_js)},
    {"/console/tokens.js", EMBEDDED(page_tokens_js)},
    {"/console/hue.js", EMBEDDED(page_hue_js)},
    {"/console/roomcharts.js", EMBEDDED(page_roomcharts_js)},
    {"/console/devices.js", EMBEDDED(page_devices_js)},
    {"/console/hands.js", EMBEDDED(page_hands_js)},
    {"/console/check.js", EMBEDDED(page_check_js)},
    {"/console/loopback.js", EMBEDDED(page_loopback_js)},
    {"/console/reference.js", EMBEDDED(page_reference_js)},
    {"/console/schema.js", EMBEDDED(page_schema_js)},
    {"/console/example.js", EMBEDDED(page_example_js)},
    {"/console/examples.js", EMBEDDED(page_examples_js)},
};

struct embedded_files embedded_console_files(void) {
    return (struct embedded_files){console_files, sizeof console_files / sizeof *console_files};
}

struct embedded_file embedded_api_description(void) { return (struct embedded_file){"/openapi.json", EMBEDDED(openapi_json)}; }
