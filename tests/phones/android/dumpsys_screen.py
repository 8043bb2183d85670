"""`dumpsys power`, `window`, `trust` and `deviceidle`: awake, unlocked, saving power or not."""

from __future__ import annotations

from collections.abc import Sequence

from tests.phones.android.commands_answer import Answer, said
from tests.phones.android.dumpsys_activity import foreground
from tests.phones.model import DeviceModel


def power(model: DeviceModel, words: Sequence[str]) -> Answer:
    """Print the power manager's state."""
    with model.present():
        plugged, number = model.reported.battery().plugged, model.settings.number
        on = model.screen.on
        stay = number("global", "stay_on_while_plugged_in")
        lines = [
            "POWER MANAGER (dumpsys power)",
            "",
            "Power Manager State:",
            "  mDirty=0x0",
            f"  mWakefulness={'Awake' if on else 'Asleep'}",
            "  mWakefulnessChanging=false",
            f"  mIsPowered={_truth(plugged)}",
            f"  mPlugType={plugged}",
            f"  mBatteryLevel={model.reported.battery().level}",
            f"  mStayOn={_truth(plugged & stay)}",
            "  mBootCompleted=true",
            "",
            "Settings and Configuration:",
            f"  mStayOnWhilePluggedInSetting={stay}",
            f"  mScreenOffTimeoutSetting={number('system', 'screen_off_timeout')}",
            "",
            "Sleep timeout: -1 ms",
            f"Screen off timeout: {number('system', 'screen_off_timeout')} ms",
            "Screen dim duration: 7000 ms",
            "",
            "Battery Saver Policy (*NOTE* they only apply when battery saver is ON):",
            f"  Battery saver is currently: {'ON' if number('global', 'low_power') else 'OFF'}",
            "",
            f"Display Power: state={'ON' if on else 'OFF'}",
        ]
    return said("\n".join(lines))


def window(model: DeviceModel, words: Sequence[str]) -> Answer:
    """Print the window manager's policy, and unless only that is asked for, what has the focus."""
    with model.present():
        screen = model.screen
        secure = screen.lock == "pin"
        lines = [
            "WINDOW MANAGER POLICY STATE (dumpsys window policy)",
            "    mSafeMode=false mSystemReady=true mSystemBooted=true",
            f"    screenState={'SCREEN_STATE_ON' if screen.on else 'SCREEN_STATE_OFF'}",
            "    KeyguardServiceDelegate",
            f"      showing={_truth(screen.locked)}",
            f"      showingAndNotOccluded={_truth(screen.locked)}",
            f"      inputRestricted={_truth(screen.locked)}",
            f"      secure={_truth(secure)}",
            f"      interactiveState={'INTERACTIVE_STATE_AWAKE' if screen.on else 'INTERACTIVE_STATE_SLEEP'}",
            f"    isKeyguardShowing={_truth(screen.locked)}",
        ]
        if "policy" not in words and "p" not in words:
            focus = "NotificationShade" if screen.locked else foreground(model)
            lines += ["", "WINDOW MANAGER WINDOWS (dumpsys window windows)"]
            lines += [f"  mCurrentFocus=Window{{5d1e9a u0 {focus}}}"]
            lines += [f"  mFocusedApp=ActivityRecord{{c5d2f0 u0 {foreground(model)} t42}}"]
    return said("\n".join(lines))


def trust(model: DeviceModel, words: Sequence[str]) -> Answer:
    """Print whether the device counts as locked: only a lock with a secret does that."""
    with model.present():
        locked = int(model.screen.locked and model.screen.lock == "pin")
    return said(
        "Trust manager state:\n"
        f' User "Owner" (id=0, flags=0x4c13) (current): trustState=UNTRUSTED, trustManaged=0, deviceLocked={locked}, '
        "isActiveUnlockRunning=0, strongAuthRequired=0x0\n   Enabled agents:\n   Events:"
    )


def device_idle(model: DeviceModel, words: Sequence[str]) -> Answer:
    """Print the doze controller's state."""
    with model.present():
        screen, plugged = model.screen, model.reported.battery().plugged
        state = "ACTIVE" if screen.on or plugged else "INACTIVE"
        return said(
            f"  mLightEnabled=true  mDeepEnabled=true\n  mForceIdle=false\n  mScreenOn={_truth(screen.on)}\n"
            f"  mScreenLocked={_truth(screen.locked)}\n  mNetworkConnected=true\n  mCharging={_truth(plugged)}\n"
            f"  mBatterySaverEnabled={_truth(model.settings.number('global', 'low_power'))}\n"
            f"  mState={state} mLightState={state}"
        )


def _truth(value: object) -> str:
    return "true" if value else "false"
