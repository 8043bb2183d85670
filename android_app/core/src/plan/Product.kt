package org.ondeviceprofiler.core

/** What one pass through a plan's body made. */
internal sealed interface Product
