"""What visitors see."""
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_http_methods, require_safe

from .forms import BookingForm
from .models import Booking, Talk
from .stored_pages import STORE_FIELD, for_all_visitors


@require_safe
def index(request):
    """Shows the next talks. The page is the same for all visitors, so Kirin stores it."""
    response = render(request, "talks/index.html", {"talks": Talk.objects.upcoming()})
    response[STORE_FIELD] = for_all_visitors("/")
    return response


@require_http_methods(["GET", "HEAD", "POST"])
def talk(request, pk):
    """Shows a talk and the form to book a seat."""
    shown = get_object_or_404(Talk.objects.upcoming(), pk=pk)
    form = BookingForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        booking = shown.book(**form.cleaned_data)
        if booking:
            request.session["bookings"] = [*request.session.get("bookings", []), booking.pk]
            return redirect("bookings")
        form.add_error(None, "All seats are booked.")
        shown.refresh_from_db()
    status = 400 if form.errors else 200
    context = {"talk": shown, "form": form, "talks": Talk.objects.upcoming()}
    return render(request, "talks/talk.html", context, status=status)


@require_safe
def bookings(request):
    """Shows what this visitor has booked. The session has the numbers of the bookings."""
    own = Booking.objects.filter(pk__in=request.session.get("bookings", [])).select_related("talk")
    return render(request, "talks/bookings.html", {"bookings": own})
