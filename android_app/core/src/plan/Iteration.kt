package org.ondeviceprofiler.core

/** One pass through a plan's body, on the device's boot clock. */
internal class Iteration(val product: Product, val startNs: Long, val endNs: Long, val stages: List<StageTime>)
