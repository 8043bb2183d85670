package org.ondeviceprofiler.core

/** The model made an image that is no image. */
internal class BrokenImage(message: String) : RunnerFailure(message)
