package org.ondeviceprofiler.virtual

/** The phone's model would not do what it was asked; `what` is in its own words. */
internal class ModelRefused(asked: String, val what: String) :
    RuntimeException("the phone's model refuses $asked: $what")
