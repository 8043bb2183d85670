package org.ondeviceprofiler.core

/** The one job of a runner's life, and its journal. */
internal class Assignment(val job: Job, val journal: Journal)
