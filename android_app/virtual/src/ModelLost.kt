package org.ondeviceprofiler.virtual

/** The phone's model is gone, and with it the phone. */
internal class ModelLost(what: String) : RuntimeException("the phone's model is lost: $what")
