# frozen_string_literal: true

Rails.application.routes.draw do
  root "books#index"
  resources :books do
    member do
      get :text
      get :file
    end
  end
  scope "/pages", controller: "pages" do
    %w[visits jar environment cached count fragment member secret redirect back moved messages
       renewed fields hints broken teapot empty nothing kinds inline attachment plain conditional
       streamed parts dates].each { |name| get name, action: name }
    match "echo/*rest", action: "echo", via: :all
    post "json"
    put "json"
    delete "session", action: "finish"
  end
  scope "/live", controller: "live" do
    get "lines"
    get "events"
    get "broken"
  end
  mount ->(env) { [200, {}, [env.values_at("SCRIPT_NAME", "PATH_INFO").inspect]] } => "/mounted"
  get "/old/:id", to: redirect("/books/%{id}")
  mount ActionCable.server => "/cable"
end
