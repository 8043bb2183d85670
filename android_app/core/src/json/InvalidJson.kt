package org.ondeviceprofiler.core

/** Text that is no strict JSON; `offset` counts characters from its begin. */
public class InvalidJson(what: String, offset: Int) : Exception("$what at character $offset")
