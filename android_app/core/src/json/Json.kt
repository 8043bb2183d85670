package org.ondeviceprofiler.core

/** A value of JSON; integers and reals are told apart, as records do. */
public sealed interface Json
