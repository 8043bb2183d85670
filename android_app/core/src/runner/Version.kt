package org.ondeviceprofiler.core

/** The version of the product that this runner belongs to. */
public const val RUNNER_VERSION: String = "0.1.0"
