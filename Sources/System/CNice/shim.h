#pragma once
#include <stun/stunagent.h>
#include <stun/stunmessage.h>
#include <stun/constants.h>
#include <stun/usages/ice.h>
#include <stun/usages/bind.h>
