package org.ondeviceprofiler.core

/** What is missing; a reason stands beside it. */
public data object JsonNull : Json
